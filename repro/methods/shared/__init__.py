"""What several methods are built from; a method itself is one file beside this folder."""
