"""The command line: asking in the command modules, presentation as pure functions in `render_*`."""
