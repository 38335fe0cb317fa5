"""Who is at the other end of a connection: sessions, and later authentication and authorization."""
