from django.db import models


class Order(models.Model):
    label = models.CharField(max_length=80)
    state = models.CharField(max_length=20, default="new")

    def __str__(self):
        return self.label
