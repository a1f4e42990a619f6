"""The REST service's face: routes, requests and answers over ``freezeframe.service``."""
