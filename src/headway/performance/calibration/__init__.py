"""What a user's own runs say of a deployment: the third layer, after the laws and what the world's runs leave."""
