"""Who may ask Omniboard: requests byte by byte, as a browser, another site or a stranger sends them."""

import socket

import pytest

from tests.tracking import toy
from tests.tracking.browsing import new_home, shown


@pytest.fixture(scope="module")
def port(installed, tmp_path_factory):
    """The port of a running Omniboard, which the user opens as runs.example:8000 too."""
    runs = tmp_path_factory.mktemp("runs")
    toy.record_toy(runs)
    with shown(runs, new_home(installed, tmp_path_factory.mktemp("board")), "runs.example:8000") as address:
        yield int(address.rstrip("/").rpartition(":")[2])


def ask(port, *headers, request="GET /sacred/api/v1/Runs/count HTTP/1.1", body=""):
    """Send a request as it stands; give the status and what follows the headers."""
    lines = [request, *(header.replace("PORT", str(port)) for header in headers), "Connection: close", "", body]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    head, _, text = answer.partition("\r\n\r\n")
    return int(head.split()[1]), text


PAGE = ("Host: 127.0.0.1:PORT", "Origin: http://127.0.0.1:PORT", "Sec-Fetch-Site: same-origin")
LINK = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")


@pytest.mark.parametrize(
    "headers",
    [
        ("Host: 127.0.0.1:PORT",),
        ("Host: LocalHost:PORT",),
        ("Host: [::1]:PORT",),
        ("Host: runs.example:8000",),
        PAGE,
        ("Host: runs.example:8000", "Origin: http://runs.example:8000", "Sec-Fetch-Site: same-origin"),
        ("Host: localhost:PORT", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"),
        ("Host: localhost:PORT", *LINK),
    ],
)
def test_its_own_page_under_a_known_address_is_answered(port, headers):
    status, text = ask(port, *headers)
    assert status == 200 and '"count":1' in text


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (("Host: evil.example",), 'Host is "evil.example"'),
        (("Host: evil.example:PORT",), "expected one of localhost:"),
        (("Host: 127.0.0.1",), "Host is"),
        (("Host: 127.0.0.1:1",), "Host is"),
        (("Host: runs.example:PORT",), "name another with --address"),
        (("Host: 127.0.0.1:PORT.evil.example",), "Host is"),
        (("Host: 127.0.0.1:PORT", "Origin: http://evil.example"), 'comes from "http://evil.example"'),
        (("Host: 127.0.0.1:PORT", "Origin: null"), 'comes from "null"'),
        (("Host: 127.0.0.1:PORT", "Origin: http://localhost:PORT"), "expected a page of 127.0.0.1:"),
        (("Host: 127.0.0.1:PORT", "Origin: http://127.0.0.1:1"), "comes from"),
        (("Host: 127.0.0.1:PORT", "Sec-Fetch-Site: cross-site"), "another site"),
        (("Host: 127.0.0.1:PORT", "Sec-Fetch-Site: same-site"), "another site"),
        (("Host: 127.0.0.1:PORT", *LINK[:2], "Sec-Fetch-Dest: iframe"), "another site"),
    ],
)
@pytest.mark.parametrize("path", ["/", "/sacred", "/sacred/api/v1/Runs/count"])
def test_strangers_are_refused_with_a_sentence(port, headers, reason, path):
    status, text = ask(port, *headers, request=f"GET {path} HTTP/1.1")
    assert status == 403 and reason in text and text.count("\n") == 1


def test_a_request_without_host_or_with_two_is_refused(port):
    assert ask(port, request="GET /sacred HTTP/1.0")[0] == 403
    assert ask(port, "Host: 127.0.0.1:PORT", "Host: evil.example")[0] in (400, 403)
    assert ask(port, "Host: evil.example", "Host: 127.0.0.1:PORT")[0] in (400, 403)


def test_a_whole_url_in_the_request_is_refused(port):
    assert ask(port, "Host: 127.0.0.1:PORT", request=f"GET http://127.0.0.1:{port}/sacred HTTP/1.1")[0] == 403


def test_another_site_changes_nothing_and_the_page_does(port):
    change = '{"omniboard": {"notes": "mine"}}'
    headers = ("Content-Type: application/json", f"Content-Length: {len(change)}")
    request = "PUT /sacred/api/v1/Runs/1 HTTP/1.1"
    stranger = ("Host: 127.0.0.1:PORT", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site")
    assert ask(port, *stranger, *headers, request=request, body=change)[0] == 403
    assert ask(port, *stranger, *LINK, *headers, request=request, body=change)[0] == 403
    assert "mine" not in ask(port, "Host: 127.0.0.1:PORT", request="GET /sacred/api/v1/Runs/1 HTTP/1.1")[1]
    assert ask(port, *PAGE, *headers, request=request, body=change)[0] == 200
    assert "mine" in ask(port, "Host: 127.0.0.1:PORT", request="GET /sacred/api/v1/Runs/1 HTTP/1.1")[1]
