# Answers an event, reacts to the answer, and reads what the reaction was worth.
# HEED_URL and HEED_TOKEN are the address and the token that heed serve prints.
call() {
  curl -sS "$HEED_URL$1" -H "Authorization: Bearer $HEED_TOKEN" -H 'Content-Type: application/json' -d "$2"
}
call /v1/answer '{"id": "ticket-7", "text": "The disk of db-1 is full.", "person": "ann"}'
call /v1/react '{"answer": "ticket-7", "person": "ann", "value": 1}'
call /v1/react '{"answer": "ticket-7", "person": "ann", "value": 5}'
curl -sS -G "$HEED_URL/v1/explanation" -H "Authorization: Bearer $HEED_TOKEN" --data-urlencode answer=ticket-7 | grep -o '"worth":[^,]*'

# Output:
# {"id":"ticket-7","ready":true,"text":"Rotate its logs.","kept":true,"path":"llm","arm":{"id":"brief"},"model":"llama3.2","violations":[]}
# {"type":"https://github.com/heedhq/heed/blob/main/web/README.md#bad-field","title":"A field is wrong","status":422,"detail":"value is 5, must be in [-1, 1].","field":"value"}
# "worth":1
