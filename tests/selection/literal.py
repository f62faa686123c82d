"""The papers' algorithms line by line, slow and plain, to compare selectors with."""

import math

import numpy as np

Matrix = list[list[float]]


def cosine(left: list[float], other: list[float]) -> float:
    product = sum(a * b for a, b in zip(left, other, strict=True))
    lengths = math.sqrt(sum(a * a for a in left)) * math.sqrt(sum(b * b for b in other))
    return product / lengths


class Algorithm1:
    """PECO's Algorithm 1 with what the specification adds: clients that were never evaluated have
    the mean score, and before two were evaluated everyone is equally likely."""

    def __init__(self, clients: int, size: int, tau: float, window: int, gamma: float):
        self.clients, self.size = clients, size
        self.tau, self.window, self.gamma = tau, window, gamma
        self.outputs: dict[int, Matrix] = {}
        self.factors: dict[int, list[float]] = {}
        self.history: list[list[float]] = []

    def round(self, evaluated: dict[int, Matrix], labels: list[int]) -> None:
        """Lines 1 to 17, up to this round's probabilities."""
        for client, matrix in evaluated.items():
            self.outputs[client] = matrix
            self.factors[client] = []
            for row, label in zip(matrix, labels, strict=True):
                right = max(range(len(row)), key=lambda column: row[column]) == label
                self.factors[client].append(1.0 if right else self.gamma)
        totals = {client: self.total(client) for client in self.outputs}
        if len(totals) < 2:
            self.history.append([1 / self.clients] * self.clients)
            return
        mean = sum(totals.values()) / len(totals)
        scores = [totals.get(client, mean) for client in range(self.clients)]
        powers = [score**self.tau for score in scores]
        self.history.append([power / sum(powers) for power in powers])

    def total(self, client: int) -> float:
        """Equation 4: the total score of a client."""
        return sum(self.similarity(client, other) for other in self.outputs if other != client)

    def similarity(self, client: int, other: int) -> float:
        """Equation 3: the similarity of two clients' predictions."""
        result = 0.0
        for sample, (row, column) in enumerate(
            zip(self.outputs[client], self.outputs[other], strict=True)
        ):
            factors = self.factors[client][sample] * self.factors[other][sample]
            result += cosine(row, column) * factors
        return result

    def smoothed(self) -> list[float]:
        """Equation 6 over the rounds that there are."""
        recent = self.history[-self.window :]
        if not recent:
            return [1 / self.clients] * self.clients
        return [
            sum(other[client] for other in recent) / len(recent) for client in range(self.clients)
        ]

    def select(self, rng: np.random.Generator) -> list[int]:
        """Lines 18 to 25 of the algorithm: draw the cohort."""
        chances, pool = self.smoothed(), list(range(self.clients))
        chosen: list[int] = []
        for _ in range(self.size):
            total = sum(chances[client] for client in pool)
            position = rng.choice(len(pool), p=[chances[client] / total for client in pool])
            chosen.append(pool.pop(int(position)))
        return chosen


class UcbPseudocode:
    """Team Darts' Algorithm 1, with ties broken in the order of a random permutation."""

    def __init__(self, clients: int, size: int, c: float, epsilon: float, initial: int):
        self.clients, self.size = clients, size
        self.c, self.epsilon, self.initial = c, epsilon, initial
        self.n = [0] * clients
        self.r: list[list[float]] = [[] for _ in range(clients)]

    def select(self, t: int, rng: np.random.Generator) -> list[int]:
        if t <= self.initial or rng.random() < self.epsilon:
            chosen = rng.choice(self.clients, self.size, replace=False).tolist()
        else:
            s = sum(self.n) + 1e-10
            bounds = []
            for client in range(self.clients):
                rewards = self.r[client]
                mean = sum(rewards) / len(rewards) if rewards else 0.0
                n = self.n[client] + 1e-10
                bounds.append(mean + self.c * math.sqrt(max(math.log(s), 0.0) / n))
            order = rng.permutation(self.clients).tolist()
            chosen = sorted(order, key=lambda client: -bounds[client])[: self.size]
        for client in chosen:
            self.n[client] += 1
        return chosen
