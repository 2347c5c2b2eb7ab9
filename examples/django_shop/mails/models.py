from django.db import models


class Mail(models.Model):
    order_id = models.BigIntegerField()
    text = models.TextField()

    def __str__(self):
        return self.text
