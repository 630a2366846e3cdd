"""Laws of queues"""
