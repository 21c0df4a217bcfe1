"""Tables, figures and the report, rendered from records."""
