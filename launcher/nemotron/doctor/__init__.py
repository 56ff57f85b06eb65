"""Whether a profile will do, asked of everything that an evaluation will need, before there is one."""
