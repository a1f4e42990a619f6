"""What the API says and is told, as types; the OpenAPI document is made of them."""
