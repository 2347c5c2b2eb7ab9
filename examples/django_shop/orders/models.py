from django.db import models


class Order(models.Model):
    label = models.CharField(max_length=40)
    state = models.CharField(max_length=20, default="new")
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self):
        return self.label
