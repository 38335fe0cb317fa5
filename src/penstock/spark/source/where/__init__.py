"""The option where: a condition in SQL that narrows what a batch query reads, and filters its rows."""
