# The whole replication in a container:
#
#   docker build --tag castle .
#   docker run --name castle castle                   # tools/repro on the embedded benchmark
#   docker cp castle:/castle/paper out                # what it rendered
#   docker run --rm --gpus all castle tools/test      # any other tool
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git chromium chromium-driver nodejs npm latexmk texlive-latex-extra \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /castle
# The environment changes with its lock alone, so that an edit of the code does not install it again.
COPY requirements.lock ./
COPY .dvc .dvc
COPY repro/__init__.py repro/errors.py repro/
COPY repro/files repro/files
COPY tools/_bootstrap.py tools/setup tools/
RUN tools/setup
COPY . .

ENV PATH="/castle/.venv/bin:$PATH"
CMD ["tools/repro"]
