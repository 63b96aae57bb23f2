"""Every request of the backend API, a method each.

Made by `generate` from Protocol/backend-api.yaml; change that.
"""

from __future__ import annotations

from typing import Any, Literal

from .types import (
    Announcement,
    AnnouncementInput,
    BlockList,
    Campaign,
    CampaignFates,
    CampaignInput,
    CampaignList,
    CampaignState,
    CampaignTally,
    Conversation,
    ConversationInput,
    ConversationList,
    ConversationState,
    Device,
    DeviceList,
    EditedMessage,
    Explanation,
    FullMessage,
    Health,
    Id,
    Message,
    MessageEdit,
    MessageInput,
    MessageList,
    Metadata,
    MetadataChanges,
    MuteInput,
    MuteList,
    NamedUsers,
    ParticipantList,
    ReceiptList,
    Scheduled,
    ScheduledList,
    TagChange,
    Tags,
    TokenFeedback,
    User,
    UserConversationList,
    UserList,
    UserState,
    WakeList,
    Webhook,
    WebhookChange,
    WebhookInput,
    WebhookList,
    WebhookSecretInput,
    WebhookTest,
)


class Operations:
    """The requests; `Client` sends them. Bodies and answers are dictionaries of JSON, with their
    fields in `types`.
    """

    def _ask(
        self, method: str, path: str, places: dict[str, str] = {}, *,
        query: dict[str, Any] = {}, body: Any = None, is_keyed: bool = False,
        key: str | None = None,
    ) -> Any:
        raise NotImplementedError

    def list_conversations(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ConversationList:
        """List the app's conversations.

        By id, which for ids that the server drew is nearly the order in which they were made.
        Conversations that were deleted for everyone are passed over, so that a piece may be
        shorter than asked for, or empty, and yet have a `next`. A conversation's metadata is
        shown with the conversation itself.
        """
        answer: ConversationList = self._ask(
            'GET',
            '/v1/conversations',
            query={'limit': limit, 'cursor': cursor},
        )
        return answer

    def create_conversation(
        self,
        body: ConversationInput,
        *,
        idempotency_key: str | None = None,
    ) -> Conversation:
        """Create a conversation.

        Its participants see it, each other (256 of them at most), its metadata, and every
        later message. With `distinct` there is one conversation for the same participants: if
        there is one already, it is the answer, and its `id` may differ from the one asked for.
        """
        answer: Conversation = self._ask(
            'POST',
            '/v1/conversations',
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def show_conversation(self, conversation: str) -> ConversationState:
        """Show a conversation."""
        answer: ConversationState = self._ask(
            'GET',
            '/v1/conversations/{conversation}',
            {'conversation': conversation},
        )
        return answer

    def delete_conversation(
        self,
        conversation: str,
        *,
        idempotency_key: str | None = None,
    ) -> None:
        """Delete a conversation for everyone.

        Every device removes it. The messages go in the background; the id stays in use.
        """
        self._ask(
            'DELETE',
            '/v1/conversations/{conversation}',
            {'conversation': conversation},
            is_keyed=True,
            key=idempotency_key,
        )

    def change_metadata(
        self,
        conversation: str,
        body: MetadataChanges,
        *,
        idempotency_key: str | None = None,
    ) -> Metadata:
        """Change a conversation's metadata.

        The changes are carried out in order, all or none. A value and values below its path
        cannot both be: the newer replaces the older. Every participant gets the whole state.
        """
        answer: Metadata = self._ask(
            'PATCH',
            '/v1/conversations/{conversation}/metadata',
            {'conversation': conversation},
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def list_receipts(
        self,
        conversation: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ReceiptList:
        """List how far each participant got.

        By name. Kept also where no receipts are told to the devices.
        """
        answer: ReceiptList = self._ask(
            'GET',
            '/v1/conversations/{conversation}/receipts',
            {'conversation': conversation},
            query={'limit': limit, 'cursor': cursor},
        )
        return answer

    def list_participants(
        self,
        conversation: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ParticipantList:
        """List the participants of a conversation.

        By name.
        """
        answer: ParticipantList = self._ask(
            'GET',
            '/v1/conversations/{conversation}/participants',
            {'conversation': conversation},
            query={'limit': limit, 'cursor': cursor},
        )
        return answer

    def add_participants(
        self,
        conversation: str,
        body: NamedUsers,
        *,
        idempotency_key: str | None = None,
    ) -> Conversation:
        """Add users to a conversation.

        They see later messages only. A user who takes part already is passed over; one who was
        removed is told to wait (429) while changes from before are still on their way.
        """
        answer: Conversation = self._ask(
            'POST',
            '/v1/conversations/{conversation}/participants',
            {'conversation': conversation},
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def remove_participants(
        self,
        conversation: str,
        body: NamedUsers,
        *,
        idempotency_key: str | None = None,
    ) -> Conversation:
        """Remove users from a conversation.

        They get what was sent before, and nothing after. A user who does not take part is
        passed over.
        """
        answer: Conversation = self._ask(
            'POST',
            '/v1/conversations/{conversation}/participants/remove',
            {'conversation': conversation},
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def list_messages(
        self,
        conversation: str,
        *,
        order: Literal['ascending', 'descending'] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> MessageList:
        """List the messages of a conversation by position."""
        answer: MessageList = self._ask(
            'GET',
            '/v1/conversations/{conversation}/messages',
            {'conversation': conversation},
            query={'order': order, 'limit': limit, 'cursor': cursor},
        )
        return answer

    def publish_message(
        self,
        conversation: str,
        body: MessageInput,
        *,
        idempotency_key: str | None = None,
    ) -> Message | Scheduled:
        """Publish a message.

        It gets the next position of the conversation and is brought into the feed of every
        participant; connected devices sync at once, others are woken. With `send_at` all of
        this happens at that time, and the answer is 202: see `/v1/scheduled`.
        """
        answer: Message | Scheduled = self._ask(
            'POST',
            '/v1/conversations/{conversation}/messages',
            {'conversation': conversation},
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def announce(
        self,
        body: AnnouncementInput,
        *,
        idempotency_key: str | None = None,
    ) -> Announcement | Scheduled:
        """Tell listed users something.

        It comes into the feed of each of them, in no conversation. With `push` it wakes and
        alerts like a message; it is not counted on the icon. More than 256 users are served
        soon after the answer. With `send_at` it comes at that time, to those named who are not
        deleted by then, and the answer is 202: see `/v1/scheduled`.
        """
        answer: Announcement | Scheduled = self._ask(
            'POST',
            '/v1/announcements',
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def take_back_announcement(
        self,
        announcement: str,
        *,
        idempotency_key: str | None = None,
    ) -> None:
        """Take an announcement back.

        Its content is gone at once, and every device that has it removes it, with its
        notification, soon after the answer; to users to whom it has not come yet it does not
        come any more. Alerts not yet sent are cancelled, and phones that may be showing it are
        woken. Taking it back again does nothing. One that waits for its `send_at` is taken
        back by `DELETE /v1/scheduled/{id}`. Whom an announcement was for is kept for 90 days:
        one that is older, or that was published by a server that did not keep it yet, is
        refused with 409.
        """
        self._ask(
            'DELETE',
            '/v1/announcements/{announcement}',
            {'announcement': announcement},
            is_keyed=True,
            key=idempotency_key,
        )

    def list_scheduled(
        self,
        *,
        state: Literal['pending', 'published', 'failed'] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ScheduledList:
        """List what is published at a time, was, or could not be.

        By the time it is for. The server publishes each within a second or so of its time, or,
        where it was not running then, when it runs again; while the app is suspended nothing
        is. What cannot be published at its time any more (the conversation is deleted, the
        sender takes part no longer, the id is taken) fails, with the reason. What came of it
        is shown for 7 days. Content is left out here.
        """
        answer: ScheduledList = self._ask(
            'GET',
            '/v1/scheduled',
            query={'state': state, 'limit': limit, 'cursor': cursor},
        )
        return answer

    def show_scheduled(self, scheduled: str) -> Scheduled:
        """Show one, with its content until it is published."""
        answer: Scheduled = self._ask(
            'GET',
            '/v1/scheduled/{scheduled}',
            {'scheduled': scheduled},
        )
        return answer

    def cancel_scheduled(self, scheduled: str, *, idempotency_key: str | None = None) -> None:
        """Take back what waits for its time, or take what failed from the list.

        It is not published then. One that was published is refused with 409 (`conflict`); its
        id is the message's: delete that.
        """
        self._ask(
            'DELETE',
            '/v1/scheduled/{scheduled}',
            {'scheduled': scheduled},
            is_keyed=True,
            key=idempotency_key,
        )

    def explain(
        self,
        message: str,
        *,
        user: User | None = None,
        device: Id | None = None,
    ) -> Explanation:
        """Say why devices were pushed to for a message, or were not.

        Of an announcement too, whose recipient must be named then. Decisions stand in the
        order in which they were taken; one without a time holds now. What is known is kept 30
        days, refusals a week. Once a device has the message, its alert is told from the
        history of its pushes: `alert-sent` or `alert-rejected`, with the silent pushes before
        it, and `alert-urgent` of what is urgent. Other reasons of an alert, and that it was
        shown with a newer one (`alert-sent-with-newer`) or in its number (`alert-counted`),
        are kept until then.
        """
        answer: Explanation = self._ask(
            'GET',
            '/v1/messages/{message}/explain',
            {'message': message},
            query={'user': user, 'device': device},
        )
        return answer

    def show_message(self, message: str) -> FullMessage:
        """Show a message.

        An announcement is not shown: its id is answered 404 here, though `explain` takes it.
        What the backend announced it has itself.
        """
        answer: FullMessage = self._ask('GET', '/v1/messages/{message}', {'message': message})
        return answer

    def edit_message(
        self,
        message: str,
        body: MessageEdit,
        *,
        idempotency_key: str | None = None,
    ) -> EditedMessage:
        """Replace the content of a message.

        Whoever got the message gets the new version. It alerts nobody anew.
        """
        answer: EditedMessage = self._ask(
            'PUT',
            '/v1/messages/{message}',
            {'message': message},
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def delete_message(self, message: str, *, idempotency_key: str | None = None) -> None:
        """Delete a message for everyone.

        Its content is gone at once, and every device removes it. Alerts not yet sent are
        cancelled. Deleting again does nothing.
        """
        self._ask(
            'DELETE',
            '/v1/messages/{message}',
            {'message': message},
            is_keyed=True,
            key=idempotency_key,
        )

    def list_users(
        self,
        *,
        prefix: User | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> UserList:
        """List the app's users.

        By name, byte by byte. A user exists from the first conversation, announcement or login
        on. Users who are being deleted are passed over, so that a piece may be shorter than
        asked for, or empty, and yet have a `next`.
        """
        answer: UserList = self._ask(
            'GET',
            '/v1/users',
            query={'prefix': prefix, 'limit': limit, 'cursor': cursor},
        )
        return answer

    def show_user(self, user: str) -> UserState:
        """Show a user.

        A user exists from the first conversation, announcement or login on.
        """
        answer: UserState = self._ask('GET', '/v1/users/{user}', {'user': user})
        return answer

    def delete_user(self, user: str, *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Delete a user with everything that is theirs.

        Answered when it is decided, durably: from then on nobody is let in as this user, the
        user's sessions are closed, and the user is not found here. The user's devices, feed,
        settings and receipts go, memberships end, messages become tombstones for everyone, and
        the user's messages that wait for their time are dropped, soon after, in steps;
        webhooks are told when that is done (`user.deleted`). While that goes on the user can
        be brought into nothing (403; an announcement passes the user over), and a login is
        refused for the time being; afterwards the same name is a new user. The name stays
        where others hold it: as a member who left a conversation, as the sender of what is
        deleted. What your backend made and did not delete stays as long as it is kept: a
        conversation in which nobody is left, an announcement that was for this user alone, and
        one that waits for its time, which then fails. Delete those yourself, an announcement
        within 90 days of its publication: afterwards nobody knows whom it was for.
        """
        answer: dict[str, Any] = self._ask(
            'DELETE',
            '/v1/users/{user}',
            {'user': user},
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def list_user_conversations(
        self,
        user: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> UserConversationList:
        """List the conversations a user takes part in.

        By id, each with how many of its messages are unread for the user and with its newest
        message.
        """
        answer: UserConversationList = self._ask(
            'GET',
            '/v1/users/{user}/conversations',
            {'user': user},
            query={'limit': limit, 'cursor': cursor},
        )
        return answer

    def mute_conversation(
        self,
        user: str,
        conversation: str,
        body: MuteInput,
        *,
        idempotency_key: str | None = None,
    ) -> None:
        """Mute a conversation for one user.

        As if one of the user's devices had done it: messages of it come as ever, and wake,
        alert and count on the icon no more, until it is ended, or `until`. All of the user's
        devices are told; nobody else is. What is so already stays as it is.
        """
        self._ask(
            'PUT',
            '/v1/users/{user}/conversations/{conversation}/mute',
            {'user': user, 'conversation': conversation},
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )

    def unmute_conversation(
        self,
        user: str,
        conversation: str,
        *,
        idempotency_key: str | None = None,
    ) -> None:
        """End the mute of a conversation for one user.

        What came meanwhile and is unread counts on the icon again. It takes no body. What is
        not muted stays as it is.
        """
        self._ask(
            'DELETE',
            '/v1/users/{user}/conversations/{conversation}/mute',
            {'user': user, 'conversation': conversation},
            is_keyed=True,
            key=idempotency_key,
        )

    def list_mutes(
        self,
        user: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> MuteList:
        """List what a user has muted.

        Of the conversations the user takes part in, by id, those that are muted now, on a
        device or by the backend. Others are passed over, so that a piece may be shorter than
        asked for, or empty, and yet have a `next`.
        """
        answer: MuteList = self._ask(
            'GET',
            '/v1/users/{user}/mutes',
            {'user': user},
            query={'limit': limit, 'cursor': cursor},
        )
        return answer

    def list_blocks(
        self,
        user: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> BlockList:
        """List whom a user blocks.

        By name, byte by byte. Blocks that have ended are passed over, so that a piece may be
        shorter than asked for, or empty, and yet have a `next`.
        """
        answer: BlockList = self._ask(
            'GET',
            '/v1/users/{user}/blocks',
            {'user': user},
            query={'limit': limit, 'cursor': cursor},
        )
        return answer

    def block_user(self, user: str, other: str, *, idempotency_key: str | None = None) -> None:
        """Block a user for another one.

        As if one of the devices of `user` had done it: what `other` sends comes to `user` no
        more, and `other` makes no conversation with `user` and adds `user` to none. All
        devices of `user` are told; nobody else is. It takes no body. Who is blocked stays so.
        `user` must be known here (404): from the first conversation, announcement or login on.
        A user can block 1,000 names (422); one whose block has ended counts on.
        """
        self._ask(
            'PUT',
            '/v1/users/{user}/blocks/{other}',
            {'user': user, 'other': other},
            is_keyed=True,
            key=idempotency_key,
        )

    def unblock_user(
        self,
        user: str,
        other: str,
        *,
        idempotency_key: str | None = None,
    ) -> None:
        """End a user's block of another one.

        What was sent meanwhile does not come any more. It takes no body. Who is not blocked
        stays so.
        """
        self._ask(
            'DELETE',
            '/v1/users/{user}/blocks/{other}',
            {'user': user, 'other': other},
            is_keyed=True,
            key=idempotency_key,
        )

    def list_user_messages(
        self,
        user: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> MessageList:
        """List what a user wrote.

        By conversation, newest first in each; also of conversations that the user has left,
        and not of those that were deleted for everyone. Deleted messages are listed without
        their content. Others' messages are looked through for it, 1,000 a piece at most and 8
        MiB of content, so that a piece may be shorter than asked for, or empty, and yet have a
        `next`: in conversations with many messages this is slow, and meant for what is asked
        seldom, as what the app holds of one user.
        """
        answer: MessageList = self._ask(
            'GET',
            '/v1/users/{user}/messages',
            {'user': user},
            query={'limit': limit, 'cursor': cursor},
        )
        return answer

    def revoke_sessions(self, user: str, *, reauthenticate: bool | None = None) -> None:
        """End all sessions of a user.

        Every connection of the user is closed at once with 2004, every session token is
        forgotten, and the devices get no pushes until somebody logs in on them again. It takes
        no body, and changes nothing more when it is repeated.
        """
        self._ask(
            'POST',
            '/v1/users/{user}/sessions/revoke',
            {'user': user},
            query={'reauthenticate': reauthenticate},
        )

    def suspend_user(self, user: str) -> None:
        """Let a user in no more.

        Every connection of the user is closed at once with 2005, every login is refused so,
        and no push leaves. The feed grows all the same. It takes no body, and changes nothing
        more when it is repeated.
        """
        self._ask('POST', '/v1/users/{user}/suspend', {'user': user})

    def resume_user(self, user: str) -> None:
        """Let a suspended user in again.

        Session tokens are good again, and pushes for what is still unseen follow within a
        minute. It takes no body, and changes nothing more when it is repeated.
        """
        self._ask('POST', '/v1/users/{user}/resume', {'user': user})

    def list_devices(self, user: str) -> DeviceList:
        """List a user's devices.

        A user whom the server has never seen has none.
        """
        answer: DeviceList = self._ask('GET', '/v1/users/{user}/devices', {'user': user})
        return answer

    def show_device(self, device: str) -> Device:
        """Show a device."""
        answer: Device = self._ask('GET', '/v1/devices/{device}', {'device': device})
        return answer

    def remove_device(self, device: str) -> None:
        """Log a device out, as one that was lost.

        Its connection is closed at once with 2004, its session tokens and its push token are
        forgotten, and it gets no pushes until somebody logs in on it again. The user's other
        devices go on. It takes no body, and is answered 404 when it is repeated.
        """
        self._ask('DELETE', '/v1/devices/{device}', {'device': device})

    def list_wakes(self, device: str, *, limit: int | None = None) -> WakeList:
        """List the pushes to a device, newest first, with what came of them.

        Kept for 30 days.
        """
        answer: WakeList = self._ask(
            'GET',
            '/v1/devices/{device}/wakes',
            {'device': device},
            query={'limit': limit},
        )
        return answer

    def list_webhooks(self) -> WebhookList:
        """List the app's webhooks."""
        answer: WebhookList = self._ask('GET', '/v1/webhooks')
        return answer

    def create_webhook(self, body: WebhookInput) -> Webhook:
        """Have what happens delivered to a URL.

        It hears of what happens from then on. Deliveries, signatures and retries are described
        in webhooks.md. No Idempotency-Key is kept: give the `id`, and a repetition is answered
        409.
        """
        answer: Webhook = self._ask('POST', '/v1/webhooks', body=body)
        return answer

    def show_webhook(self, webhook: str) -> Webhook:
        """Show a webhook and how it does."""
        answer: Webhook = self._ask('GET', '/v1/webhooks/{webhook}', {'webhook': webhook})
        return answer

    def change_webhook(self, webhook: str, body: WebhookChange) -> Webhook:
        """Change a webhook, switch it off, or have it go on.

        `active: true` also takes back that the server gave it up: it goes on where it stopped.
        With it, or with another `url`, what waits for its next attempt is sent at once ("try
        now"), and the pauses begin anew; after an attempt that is under way, if there is one.

        Other `events` are asked for from now on. Of added kinds, a webhook that has taken all
        that it asked for hears nothing that happened before; where something waits for it,
        what happened since the oldest of that and was kept for other webhooks may be told,
        too.
        """
        answer: Webhook = self._ask(
            'PATCH',
            '/v1/webhooks/{webhook}',
            {'webhook': webhook},
            body=body,
        )
        return answer

    def remove_webhook(self, webhook: str) -> None:
        """End a webhook."""
        self._ask('DELETE', '/v1/webhooks/{webhook}', {'webhook': webhook})

    def rotate_webhook_secret(self, webhook: str, body: WebhookSecretInput) -> Webhook:
        """Sign with a new secret, beside the one so far.

        Refused with 422 while two secrets are live. What waits for its next attempt is sent at
        once. Better give a `secret` of your own: with the one that is the newest already, as
        after an answer that was lost, the same is answered and nothing changes. A drawn one is
        shown in this answer alone; if that is lost, take the secret back (`DELETE
        .../secrets/newest`) and ask again. No Idempotency-Key is kept, for no secret is.
        """
        answer: Webhook = self._ask(
            'POST',
            '/v1/webhooks/{webhook}/secrets',
            {'webhook': webhook},
            body=body,
        )
        return answer

    def end_webhook_secret(self, webhook: str) -> Webhook:
        """Forget the older secret; nothing happens if there is none.

        Once the receiver knows the newer one.
        """
        answer: Webhook = self._ask(
            'DELETE',
            '/v1/webhooks/{webhook}/secrets/second',
            {'webhook': webhook},
        )
        return answer

    def undo_webhook_secret(self, webhook: str) -> Webhook:
        """Forget the newer of two secrets; nothing happens if there is one.

        The older one, which the receiver knows, goes on alone. For a rotation whose answer was
        lost, and with it the secret that was drawn.
        """
        answer: Webhook = self._ask(
            'DELETE',
            '/v1/webhooks/{webhook}/secrets/newest',
            {'webhook': webhook},
        )
        return answer

    def test_webhook(self, webhook: str) -> WebhookTest:
        """Try a webhook out.

        Its receiver gets an event `webhook.test`, whatever events the webhook asks for, signed
        and delivered as all others: in its turn behind what waits, and what waits for its next
        attempt is sent at once. What comes of it stands in the webhook as of any delivery:
        `last_status`, `last_error`, `attempts`, `last_success_at`; it counts as any other. It
        takes no body. While one waits, a repetition is that one. A webhook that is not
        `active` is sent nothing: it is refused with 409 (`conflict`), and nothing is kept for
        later. Switched off before the receiver has it, the webhook does not get it later
        either. While nodes of a version without this address run, test nothing: they cannot
        read the event.
        """
        answer: WebhookTest = self._ask(
            'POST',
            '/v1/webhooks/{webhook}/test',
            {'webhook': webhook},
        )
        return answer

    def list_dropped_tokens(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> TokenFeedback:
        """List push tokens that were dropped because APNs called them dead or wrong.

        In the order in which they were dropped, kept for 30 days. Give `next` as `after` to go
        on, now or whenever more may have come. A device that registers a token again is not
        taken out.
        """
        answer: TokenFeedback = self._ask(
            'GET',
            '/v1/push/feedback',
            query={'after': after, 'limit': limit},
        )
        return answer

    def list_campaigns(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> CampaignList:
        """List the app's campaigns.

        By id, from the highest; newest first, where ids are made as usual (UUIDv7).
        """
        answer: CampaignList = self._ask(
            'GET',
            '/v1/campaigns',
            query={'limit': limit, 'cursor': cursor},
        )
        return answer

    def create_campaign(
        self,
        body: CampaignInput,
        *,
        idempotency_key: str | None = None,
    ) -> CampaignTally | Campaign:
        """Send a text to many devices, chosen by a filter.

        Each device of the audience gets one push, in its language, whatever happens to the
        server meanwhile. Who is in the audience is decided when its turn comes, not now. Left
        out are devices without a push token, with notifications off, or presumed gone, and
        users that are suspended. With `dry_run` nothing is made: the answer counts.

        With `canary` a share of the devices gets it first; then the campaign waits in state
        `review` until it is resumed, or goes on by itself after `wait_seconds` if at most half
        of `stop_percent` of the share's pushes were rejected. With `local_start` each device
        gets it when its own clock shows that time (as it last said its offset from UTC; those
        that did not say it, with UTC), at once where it has passed; this excludes `canary`.
        The campaign goes from east to west once: a device that says another offset meanwhile,
        of a place further east whose turn is over, does not get it, and no count tells of
        that. Where clocks were set forward by half an hour since the device connected, it
        comes half an hour late.

        A campaign stops itself (state `stopped`) when `stop_percent` of a hundred of its last
        128 answers, and 10 at least, say that a token or the request is wrong. It is cancelled
        if it is not over 30 days after its start, also where it is paused or stopped or its
        app is suspended, and kept for 90 days after its end. An app has at most 32 that are
        not over.
        """
        answer: CampaignTally | Campaign = self._ask(
            'POST',
            '/v1/campaigns',
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def show_campaign(self, campaign: str) -> Campaign:
        """Show a campaign and how far it got."""
        answer: Campaign = self._ask('GET', '/v1/campaigns/{campaign}', {'campaign': campaign})
        return answer

    def pause_campaign(
        self,
        campaign: str,
        *,
        idempotency_key: str | None = None,
    ) -> CampaignState:
        """Let nothing more of a campaign leave.

        What APNs was sent already is answered and counted. Repeated, it changes nothing.
        """
        answer: CampaignState = self._ask(
            'POST',
            '/v1/campaigns/{campaign}/pause',
            {'campaign': campaign},
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def resume_campaign(
        self,
        campaign: str,
        *,
        idempotency_key: str | None = None,
    ) -> CampaignState:
        """Let a campaign go on.

        After a pause, after it stopped itself, and past the look at its canary share: each
        takes one resume.
        """
        answer: CampaignState = self._ask(
            'POST',
            '/v1/campaigns/{campaign}/resume',
            {'campaign': campaign},
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def cancel_campaign(
        self,
        campaign: str,
        *,
        idempotency_key: str | None = None,
    ) -> CampaignState:
        """End a campaign.

        What waits goes; what was sent is sent.
        """
        answer: CampaignState = self._ask(
            'POST',
            '/v1/campaigns/{campaign}/cancel',
            {'campaign': campaign},
            is_keyed=True,
            key=idempotency_key,
        )
        return answer

    def explain_campaign(self, campaign: str, user: str) -> CampaignFates:
        """Say why each device of a user got a campaign, or did not."""
        answer: CampaignFates = self._ask(
            'GET',
            '/v1/campaigns/{campaign}/users/{user}',
            {'campaign': campaign, 'user': user},
        )
        return answer

    def list_user_tags(self, user: str) -> Tags:
        """List the tags of a user."""
        answer: Tags = self._ask('GET', '/v1/users/{user}/tags', {'user': user})
        return answer

    def change_user_tags(
        self,
        user: str,
        body: TagChange,
        *,
        idempotency_key: str | None = None,
    ) -> None:
        """Put tags on a user, and take others off.

        At most 64; they go with the user. `remove` is carried out first.
        """
        self._ask(
            'POST',
            '/v1/users/{user}/tags',
            {'user': user},
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )

    def list_device_tags(self, user: str, device: str) -> Tags:
        """List the tags of a device."""
        answer: Tags = self._ask(
            'GET',
            '/v1/users/{user}/devices/{device}/tags',
            {'user': user, 'device': device},
        )
        return answer

    def change_device_tags(
        self,
        user: str,
        device: str,
        body: TagChange,
        *,
        idempotency_key: str | None = None,
    ) -> None:
        """Put tags on a device, and take others off.

        At most 64; they go with the user. `remove` is carried out first.
        """
        self._ask(
            'POST',
            '/v1/users/{user}/devices/{device}/tags',
            {'user': user, 'device': device},
            body=body,
            is_keyed=True,
            key=idempotency_key,
        )

    def live(self) -> Health:
        """Whether the process turns.

        Restart the server if this is not answered. It says nothing about the store.
        """
        answer: Health = self._ask('GET', '/livez')
        return answer

    def ready(self) -> Health:
        """Whether the server takes traffic."""
        answer: Health = self._ask('GET', '/readyz')
        return answer

    def metrics(self) -> str:
        """Counters and gauges in the text format of Prometheus."""
        answer: str = self._ask('GET', '/metrics')
        return answer

    def show_description(self) -> str:
        """This file, as this server was built with it."""
        answer: str = self._ask('GET', '/openapi.yaml')
        return answer

    def show_page(self) -> str:
        """This file as a page."""
        answer: str = self._ask('GET', '/docs')
        return answer
