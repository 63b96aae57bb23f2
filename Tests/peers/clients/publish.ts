// Publishes with the client that openapi-generator made: node publish.js URL KEY.
import { Configuration, ConversationsApi, ResponseError, UsersApi } from "./index";

declare const process: { argv: string[]; exit(status: number): void };

async function main(): Promise<void> {
    const [basePath, accessToken] = process.argv.slice(2);
    const configuration = new Configuration({ basePath, accessToken });
    const conversations = new ConversationsApi(configuration);
    const room = await conversations.createConversation({
        conversationInput: { participants: ["anna", "ben"] },
        idempotencyKey: "typescript-room",
    });
    const messageInput = {
        sender: "anna",
        parts: [{ mimeType: "text/plain", text: "Dinner at eight?" }],
        push: { title: "Anna", body: "Dinner at eight?", sound: "bell.caf" },
    };
    const publish = { conversation: room.id, messageInput, idempotencyKey: "typescript-1" };
    const first = await conversations.publishMessage(publish);
    const again = await conversations.publishMessage(publish);
    const listed = await conversations.listMessages({ conversation: room.id });
    const inbox = await new UsersApi(configuration).listUserConversations({ user: "ben" });
    const row = inbox.conversations.filter((one) => one.id === room.id)[0];
    console.log("message", first.id);
    console.log("again", again.id);
    console.log("listed", listed.messages.length, listed.messages[0].parts![0].text);
    console.log("inbox", row.unread, row.lastMessage!.parts![0].text);
    try {
        await conversations.publishMessage({
            conversation: "0190a1b2-c3d4-7123-8456-000000000000", messageInput,
        });
    } catch (problem) {
        const response = (problem as ResponseError).response;
        console.log("refused", response.status, (await response.json()).code);
    }
}

main().catch((problem) => {
    console.error(problem);
    process.exit(1);
});
