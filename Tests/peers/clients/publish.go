// Publishes with the client that openapi-generator made: publish URL KEY.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	rouse "rouse"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	configuration := rouse.NewConfiguration()
	configuration.Servers = rouse.ServerConfigurations{{URL: os.Args[1]}}
	client := rouse.NewAPIClient(configuration)
	background := context.WithValue(context.Background(), rouse.ContextAccessToken, os.Args[2])

	asked := rouse.NewConversationInput([]string{"anna", "ben"})
	room, _, err := client.ConversationsAPI.CreateConversation(background).
		ConversationInput(*asked).IdempotencyKey("go-room").Execute()
	must(err)

	part := rouse.NewPartInput("text/plain")
	part.SetText("Dinner at eight?")
	push := rouse.NewPush()
	push.SetTitle("Anna")
	push.SetBody("Dinner at eight?")
	bell := "bell.caf"
	push.SetSound(rouse.StringAsPushSound(&bell))
	message := rouse.NewMessageInput([]rouse.PartInput{*part})
	message.SetSender("anna")
	message.SetPush(*push)
	publish := client.ConversationsAPI.PublishMessage(background, room.GetId()).
		MessageInput(*message).IdempotencyKey("go-1")
	first, _, err := publish.Execute()
	must(err)
	again, _, err := publish.Execute()
	must(err)
	listed, _, err := client.ConversationsAPI.ListMessages(background, room.GetId()).Execute()
	must(err)
	inbox, _, err := client.UsersAPI.ListUserConversations(background, "ben").Execute()
	must(err)
	fmt.Println("message", first.GetId())
	fmt.Println("again", again.GetId())
	fmt.Println("listed", len(listed.Messages), listed.Messages[0].Parts[0].GetText())
	for _, row := range inbox.Conversations {
		if row.GetId() == room.GetId() {
			newest := row.GetLastMessage()
			fmt.Println("inbox", row.GetUnread(), newest.Parts[0].GetText())
		}
	}
	_, answer, err := client.ConversationsAPI.
		PublishMessage(background, "0190a1b2-c3d4-7123-8456-000000000000").
		MessageInput(*message).Execute()
	var problem rouse.Problem
	must(json.Unmarshal(err.(*rouse.GenericOpenAPIError).Body(), &problem))
	fmt.Println("refused", answer.StatusCode, problem.GetCode())
}
