"""Where commands run and files lie: this machine, or one behind SSH."""
