# Chooses an arm and reports its outcome, and sends a request again if a problem may pass.
import json, os, time, urllib.error, urllib.request


def call(path, body):
    headers = {
        "Authorization": "Bearer " + os.environ["HEED_TOKEN"],
        "Content-Type": "application/json",
    }
    for wait in (0.5, 2, 8, None):
        request = urllib.request.Request(os.environ["HEED_URL"] + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=70) as answer:
                return json.loads(answer.read() or "null")
        except urllib.error.HTTPError as problem:
            if wait is None or problem.code not in (408, 409, 429, 500, 502, 504):
                raise RuntimeError(json.load(problem)["detail"]) from None
        except OSError:
            if wait is None:
                raise
        time.sleep(wait)


chosen = call("/v1/select", {"item": "ann", "category": "mail"})
worked = chosen["arm"] == "brief"  # your application finds out
result = {"choice": chosen["choice"], "value": 1 if worked else -1, "confidence": 1, "source": "ann"}
print(call("/v1/observe", result))
print(call("/v1/observe", result))
try:
    call("/v1/observe", {**result, "sauce": "ann"})
except RuntimeError as problem:
    print(problem)

# Output:
# {'disposition': 'applied'}
# {'disposition': 'duplicate'}
# sauce is not known here.
