"""What the backend API takes and gives.

Made by `generate` from Protocol/backend-api.yaml; change that.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Id: TypeAlias = str

User: TypeAlias = str

Time: TypeAlias = str

Count: TypeAlias = int


class ConversationInput(TypedDict):
    """`ConversationInput` of the description."""

    id: NotRequired[Id]
    participants: list[User]
    distinct: NotRequired[bool]
    receipts_off: NotRequired[bool]
    metadata: NotRequired[list[MetadataValue]]


MetadataPath: TypeAlias = list[str]


class MetadataValue(TypedDict):
    """`MetadataValue` of the description."""

    path: MetadataPath
    value: str


class MetadataChanges(TypedDict):
    """`MetadataChanges` of the description."""

    changes: list[MetadataChange]
    base_version: NotRequired[int]


class MetadataChange(TypedDict):
    """A path with either `value` or `removed`."""

    path: MetadataPath
    value: NotRequired[str]
    removed: NotRequired[bool]


class Metadata(TypedDict):
    """`Metadata` of the description."""

    version: Count
    values: list[MetadataValue]


class NamedUsers(TypedDict):
    """`NamedUsers` of the description."""

    users: list[User]


class MessageInput(TypedDict):
    """`MessageInput` of the description."""

    id: NotRequired[Id]
    sender: NotRequired[User]
    parts: list[PartInput]
    push: NotRequired[Push]
    urgency: NotRequired[Urgency]
    send_at: NotRequired[str]


class AnnouncementInput(TypedDict):
    """`AnnouncementInput` of the description."""

    id: NotRequired[Id]
    users: list[User]
    parts: list[PartInput]
    push: NotRequired[Push]
    urgency: NotRequired[Urgency]
    send_at: NotRequired[str]


class ScheduledList(TypedDict):
    """`ScheduledList` of the description."""

    scheduled: list[Scheduled]
    next: NotRequired[str]


class ScheduledFailure(TypedDict):
    """`ScheduledFailure` of the description."""

    code: int
    name: str
    detail: str


class ScheduledPush(TypedDict):
    """`ScheduledPush` of the description."""

    title: str
    body: str


class Scheduled(TypedDict):
    """`Scheduled` of the description."""

    id: Id
    kind: Literal['message', 'announcement']
    state: Literal['pending', 'published', 'failed']
    send_at: Time
    created_at: Time
    conversation_id: NotRequired[Id]
    sender: NotRequired[User]
    recipient_count: NotRequired[int]
    published_at: NotRequired[Time]
    position: NotRequired[int]
    failed_at: NotRequired[Time]
    failure: NotRequired[ScheduledFailure]
    parts: NotRequired[list[Part]]
    push: NotRequired[ScheduledPush]


class Announcement(TypedDict):
    """`Announcement` of the description."""

    id: Id
    sent_at: Time
    recipient_count: int


class PartInput(TypedDict):
    """A MIME type with one of `text`, `content` and `reference`."""

    mime_type: str
    text: NotRequired[str]
    content: NotRequired[str]
    reference: NotRequired[Reference]


class Part(TypedDict):
    """A MIME type with one of `text`, `content` and `reference`; `text` if the MIME type says
    text and the content is UTF-8.
    """

    mime_type: str
    text: NotRequired[str]
    content: NotRequired[str]
    reference: NotRequired[Reference]


class Reference(TypedDict):
    """Content kept elsewhere. The server checks the form and never fetches it; clients compare
    size and digest.
    """

    url: str
    size: int
    digest: str
    expires_at: NotRequired[str]


class ExplanationSubjects(TypedDict):
    """`ExplanationSubjects` of the description."""

    user: User
    device: NotRequired[Id]
    steps: list[ExplainStep]


class Explanation(TypedDict):
    """`Explanation` of the description."""

    message: Id
    conversation_id: NotRequired[Id]
    sent_at: Time
    urgency: Literal['urgent', 'normal', 'passive']
    subjects: list[ExplanationSubjects]
    is_cut: bool
    trace: NotRequired[str]


class ExplainStep(TypedDict):
    """`ExplainStep` of the description."""

    at: NotRequired[Time]
    reason: Literal[
        'on-its-way', 'not-recipient', 'own-message', 'deleted', 'no-push-text', 'muted',
        'read-already', 'sender-blocked', 'passive', 'read', 'user-suspended', 'app-suspended',
        'no-device', 'applied', 'applied-ahead', 'session', 'session-expected', 'tokenless',
        'no-credential', 'presumed-gone', 'nothing-owed', 'wake-due', 'wake-sending',
        'wake-waiting', 'wake-pending', 'wake-synced', 'wake-connected-not-synced', 'wake-late',
        'wake-superseded', 'wake-expired', 'wake-rejected', 'wake-no-show', 'alert-urgent',
        'alert-unreachable', 'alert-refresh-off', 'alert-presumed-gone', 'alert-no-budget',
        'alert-wake-missed', 'alert-not-synced', 'alert-wake-rejected', 'alert-queued',
        'alert-sending', 'alert-sent', 'alert-sent-with-newer', 'alert-counted',
        'alert-cancelled', 'alert-rejected', 'alert-timed', 'alert-doubted', 'alert-delayed',
        'alert-expired'
    ]
    until: NotRequired[Time]
    push: NotRequired[Id]
    status: NotRequired[int]
    answer: NotRequired[str]


Urgency: TypeAlias = Literal['urgent', 'normal', 'passive']


class PushTexts(TypedDict):
    """`PushTexts` of the description."""

    title: NotRequired[str]
    subtitle: NotRequired[str]
    body: NotRequired[str]
    more: NotRequired[str]


class Push(TypedDict):
    """What an alert shows, and how; without a text or a localization key no device is woken.
    Texts are cut to what Apple takes, 4,096 bytes for all of it; a push that leaves less than
    256 bytes for a text that needs them is refused with 413. Names have at most 128 bytes,
    localization arguments 256, texts 2,048; and all together that stands beside `title` and
    `body` (`texts`, keys with their arguments, `data`, names) at most 32,768: 64 languages
    have some 500 bytes each.
    """

    title: NotRequired[str]
    subtitle: NotRequired[str]
    body: NotRequired[str]
    title_loc_key: NotRequired[LocKey]
    title_loc_args: NotRequired[LocArgs]
    subtitle_loc_key: NotRequired[LocKey]
    subtitle_loc_args: NotRequired[LocArgs]
    loc_key: NotRequired[LocKey]
    loc_args: NotRequired[LocArgs]
    more: NotRequired[str]
    more_loc_key: NotRequired[LocKey]
    texts: NotRequired[dict[str, PushTexts]]
    sound: NotRequired[str | CriticalSound]
    thread: NotRequired[str]
    category: NotRequired[str]
    interruption_level: NotRequired[Literal['passive', 'active', 'time-sensitive', 'critical']]
    relevance: NotRequired[float]
    target_content_id: NotRequired[str]
    mutable_content: NotRequired[bool]
    at: NotRequired[str]
    local: NotRequired[str]
    zone: NotRequired[str]
    expires_at: NotRequired[str]
    ttl_seconds: NotRequired[int]
    event: NotRequired[str]
    object: NotRequired[str]
    data: NotRequired[dict[str, Any]]


class CriticalSound(TypedDict):
    """One that is heard on a muted device, too; Apple must permit it to the app."""

    critical: bool
    name: NotRequired[str]
    volume: NotRequired[float]


LocKey: TypeAlias = str

LocArgs: TypeAlias = list[str]


class PushText(TypedDict):
    """What an alert about an edited message shows."""

    title: NotRequired[str]
    body: NotRequired[str]


class Conversation(TypedDict):
    """`Conversation` of the description."""

    id: Id
    created_at: Time
    participant_count: Count
    distinct: bool
    receipts_off: bool


class ConversationState(TypedDict):
    """`ConversationState` of the description."""

    id: Id
    created_at: Time
    creator: NotRequired[User]
    participant_count: Count
    distinct: bool
    receipts_off: bool
    position: LastPosition
    metadata: Metadata


LastPosition: TypeAlias = Count

JoinedPosition: TypeAlias = Count

Next: TypeAlias = str


class ParticipantListParticipants(TypedDict):
    """`ParticipantListParticipants` of the description."""

    user: User
    joined_position: JoinedPosition


class ParticipantList(TypedDict):
    """`ParticipantList` of the description."""

    participants: list[ParticipantListParticipants]
    next: NotRequired[Next]


class MessageList(TypedDict):
    """`MessageList` of the description."""

    messages: list[FullMessage]
    next: NotRequired[Next]


class FullMessage(TypedDict):
    """`FullMessage` of the description."""

    id: Id
    conversation_id: Id
    position: int
    sender: NotRequired[User]
    sent_at: Time
    version: int
    parts: NotRequired[list[Part]]
    push: NotRequired[PushText]
    edited_at: NotRequired[Time]
    deleted_at: NotRequired[Time]
    deleted_by: NotRequired[User]


class ReceiptListReceipts(TypedDict):
    """`ReceiptListReceipts` of the description."""

    user: User
    delivered: Count
    read: Count


class ReceiptList(TypedDict):
    """`ReceiptList` of the description."""

    receipts: list[ReceiptListReceipts]
    next: NotRequired[Next]


class UserStateFeed(TypedDict):
    """`UserStateFeed` of the description."""

    head: Count
    visible_head: Count


class UserState(TypedDict):
    """`UserState` of the description."""

    user: User
    created_at: Time
    suspended: bool
    device_count: Count
    feed: UserStateFeed
    unread: Count


class UserListUsers(TypedDict):
    """`UserListUsers` of the description."""

    user: User
    created_at: Time
    suspended: bool


class UserList(TypedDict):
    """`UserList` of the description."""

    users: list[UserListUsers]
    next: NotRequired[Next]


class ConversationListConversations(TypedDict):
    """`ConversationListConversations` of the description."""

    id: Id
    created_at: Time
    creator: NotRequired[User]
    participant_count: Count
    distinct: bool
    receipts_off: bool
    position: LastPosition


class ConversationList(TypedDict):
    """`ConversationList` of the description."""

    conversations: list[ConversationListConversations]
    next: NotRequired[Next]


class UserConversationList(TypedDict):
    """`UserConversationList` of the description."""

    conversations: list[UserConversation]
    next: NotRequired[Next]


class UserConversation(TypedDict):
    """`UserConversation` of the description."""

    id: Id
    created_at: Time
    participant_count: Count
    distinct: bool
    receipts_off: bool
    position: LastPosition
    joined_position: JoinedPosition
    unread: Count
    last_message: NotRequired[FullMessage]


class Message(TypedDict):
    """`Message` of the description."""

    id: Id
    conversation_id: Id
    position: int
    sender: NotRequired[User]
    sent_at: Time


class MessageEdit(TypedDict):
    """`MessageEdit` of the description."""

    parts: list[PartInput]
    push: NotRequired[PushText]
    base_version: NotRequired[int]


class EditedMessage(TypedDict):
    """`EditedMessage` of the description."""

    id: Id
    conversation_id: Id
    position: int
    sender: NotRequired[User]
    sent_at: Time
    version: int
    edited_at: Time


class DeviceList(TypedDict):
    """`DeviceList` of the description."""

    devices: list[Device]


class DeviceFeed(TypedDict):
    """`DeviceFeed` of the description."""

    applied: Count
    head: Count
    visible_head: Count
    is_behind: bool


class DevicePushToken(TypedDict):
    """The token itself is never told."""

    is_held: bool
    environment: NotRequired[Literal['production', 'development']]
    topic: NotRequired[str]
    confirmed_at: NotRequired[Time]


class DeviceClient(TypedDict):
    """`DeviceClient` of the description."""

    name: str
    version: str


class DeviceSettings(TypedDict):
    """`DeviceSettings` of the description."""

    notifications: Setting
    background_refresh: Setting
    low_power: Setting


class DevicePlace(TypedDict):
    """As the device said it last; what it did not say is left out."""

    locale: NotRequired[str]
    time_zone: NotRequired[str]
    utc_offset_minutes: NotRequired[int]


class DeviceSessions(TypedDict):
    """`DeviceSessions` of the description."""

    role: Literal['app', 'extension']
    opened_at: Time
    dormant_at: NotRequired[Time]
    expected_until: NotRequired[Time]


class Device(TypedDict):
    """`Device` of the description."""

    id: Id
    user: User
    reachability: Literal['online', 'wakeable', 'waking', 'unreachable', 'tokenless']
    is_presumed_gone: bool
    grace_seconds: Count
    grace_source: Literal['device', 'app', 'policy']
    silent_budget: Count
    feed: DeviceFeed
    push_token: DevicePushToken
    client: DeviceClient
    settings: DeviceSettings
    place: DevicePlace
    sessions: list[DeviceSessions]
    created_at: Time
    last_seen_at: Time


Setting: TypeAlias = Literal['on', 'off', 'unknown']


class WakeList(TypedDict):
    """`WakeList` of the description."""

    wakes: list[Wake]


class Wake(TypedDict):
    """`Wake` of the description."""

    id: Id
    kind: Literal['silent', 'alert', 'badge']
    outcome: Literal[
        'pending', 'synced', 'connected-not-synced', 'late', 'superseded', 'expired',
        'rejected', 'no-show', 'accepted'
    ]
    seq: Count
    conversation_id: NotRequired[Id]
    message_id: Id
    attempts: Count
    queued_at: Time
    sent_at: Time
    accepted_at: NotRequired[Time]
    connected_at: NotRequired[Time]
    synced_at: NotRequired[Time]
    status: NotRequired[int]
    reason: NotRequired[str]
    badge: NotRequired[Count]


class TokenFeedback(TypedDict):
    """`TokenFeedback` of the description."""

    dropped: list[DroppedToken]
    next: str


class DroppedToken(TypedDict):
    """`DroppedToken` of the description."""

    user: str
    device: Id
    token_sha256: str
    environment: Literal['production', 'development']
    topic: str
    status: int
    reason: str
    dead_since: NotRequired[Time]
    dropped_at: Time


Tag: TypeAlias = str


class Tags(TypedDict):
    """`Tags` of the description."""

    tags: list[Tag]


class TagChange(TypedDict):
    """`TagChange` of the description."""

    add: NotRequired[list[Tag]]
    remove: NotRequired[list[Tag]]


class Audience(TypedDict):
    """All that are given must hold; none given, all devices of the app. A list that is empty is
    refused: leave it out to take every device.
    """

    topics: NotRequired[list[str]]
    clients: NotRequired[list[str]]
    locales: NotRequired[list[str]]
    time_zones: NotRequired[list[str]]
    version_min: NotRequired[str]
    version_max: NotRequired[str]
    seen_within_seconds: NotRequired[int]
    unseen_for_seconds: NotRequired[int]
    tags: NotRequired[list[Tag]]
    any_tags: NotRequired[list[Tag]]
    no_tags: NotRequired[list[Tag]]
    reachability: NotRequired[list[Literal[
        'online', 'wakeable', 'waking', 'unreachable', 'tokenless'
    ]]]


class Canary(TypedDict):
    """A share of the devices that gets it first. Then the campaign is in `review`: until it is
    resumed, or with `wait_seconds` until so long after the last answer, if few were rejected.
    Where nobody of the share got it, as may be in a small audience, it waits to be resumed in
    either case, and `reason` says so: `canary` of a dry run tells how many would get it.
    """

    share: int
    wait_seconds: NotRequired[int]


class CampaignInput(TypedDict):
    """Its `push` has no times of its own: with `at`, `local`, `expires_at` or `ttl_seconds` it is
    refused. Those of the campaign are `start` or `local_start`, and `expiration_seconds`.
    """

    id: NotRequired[Id]
    name: NotRequired[str]
    push: Push
    audience: NotRequired[Audience]
    start: NotRequired[str]
    local_start: NotRequired[str]
    rate: NotRequired[int]
    canary: NotRequired[Canary]
    stop_percent: NotRequired[int]
    expiration_seconds: NotRequired[int]
    dry_run: NotRequired[bool]


class CampaignTally(TypedDict):
    """`CampaignTally` of the description."""

    dry_run: bool
    seen: Count
    devices: Count
    canary: Count
    left_out: LeftOut


class LeftOut(TypedDict):
    """Devices that the filter takes and that get none, by why. `changed`: they were in the
    audience when they were queued, and not when their turn came, or were deleted with their
    user before APNs' answer, or what is kept of them can be read no more. What was left out of
    a canary share is counted anew with the rest.
    """

    presumed_gone: Count
    tokenless: Count
    notifications_off: Count
    suspended: Count
    no_credential: Count
    changed: Count


class CampaignList(TypedDict):
    """`CampaignList` of the description."""

    campaigns: list[Campaign]
    next: NotRequired[Next]


CampaignStateName: TypeAlias = Literal[
    'scheduled', 'canary', 'review', 'running', 'paused', 'stopped', 'cancelled', 'finished'
]


class CampaignState(TypedDict):
    """`CampaignState` of the description."""

    id: Id
    state: CampaignStateName


class CampaignPush(TypedDict):
    """`CampaignPush` of the description."""

    title: NotRequired[str]
    body: NotRequired[str]
    locales: list[str]


class Campaign(TypedDict):
    """The answer that made it has neither `state` nor `progress`."""

    id: Id
    name: str
    created_at: Time
    start: NotRequired[Time]
    local_start: NotRequired[str]
    rate: int
    canary: NotRequired[Canary]
    stop_percent: int
    expiration_seconds: NotRequired[Count]
    push: CampaignPush
    audience: Audience
    state: NotRequired[CampaignStateName]
    reason: NotRequired[str]
    since: NotRequired[Time]
    started_at: NotRequired[Time]
    finished_at: NotRequired[Time]
    continues_at: NotRequired[Time]
    progress: NotRequired[CampaignProgress]


class CampaignProgressCanary(TypedDict):
    """`CampaignProgressCanary` of the description."""

    devices: Count
    accepted: Count
    refused: Count


class CampaignProgressLastRejection(TypedDict):
    """`CampaignProgressLastRejection` of the description."""

    status: int
    reason: str


class CampaignProgress(TypedDict):
    """`CampaignProgress` of the description."""

    seen: Count
    audience: Count
    waiting: Count
    sending: Count
    accepted: Count
    refused: Count
    cancelled: Count
    left_out: LeftOut
    canary: CampaignProgressCanary
    is_complete: bool
    latest_answers: Count
    latest_rejections: Count
    last_rejection: NotRequired[CampaignProgressLastRejection]


class CampaignFates(TypedDict):
    """`CampaignFates` of the description."""

    devices: list[CampaignFate]


class CampaignFate(TypedDict):
    """`CampaignFate` of the description."""

    device: Id
    push: Literal['none', 'queued', 'sending', 'sent', 'refused', 'left-out', 'cancelled']
    reason: NotRequired[str]
    status: NotRequired[int]
    at: NotRequired[Time]
    due: NotRequired[Time]
    attempts: NotRequired[Count]
    apns_id: NotRequired[Id]
    is_canary: NotRequired[bool]


class Health(TypedDict):
    """`Health` of the description."""

    status: Literal['alive', 'ready', 'not ready']
    reasons: NotRequired[list[str]]


class Problem(TypedDict):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: int


WebhookURL: TypeAlias = str

WebhookEvents: TypeAlias = list[Literal[
    'message.created', 'message.edited', 'message.deleted', 'message.delivered', 'message.read',
    'conversation.created', 'conversation.participants-changed',
    'conversation.metadata-changed', 'conversation.deleted', 'device.token-dropped',
    'user.deleted'
]]

WebhookSecret: TypeAlias = str


class WebhookInput(TypedDict):
    """`WebhookInput` of the description."""

    id: NotRequired[Id]
    url: WebhookURL
    events: NotRequired[WebhookEvents]
    secret: NotRequired[WebhookSecret]


class WebhookChange(TypedDict):
    """`WebhookChange` of the description."""

    url: NotRequired[WebhookURL]
    events: NotRequired[WebhookEvents]
    active: NotRequired[bool]


class WebhookSecretInput(TypedDict):
    """`WebhookSecretInput` of the description."""

    secret: NotRequired[WebhookSecret]


class MuteInput(TypedDict):
    """`MuteInput` of the description."""

    until: NotRequired[str]


class MuteList(TypedDict):
    """`MuteList` of the description."""

    mutes: list[Mute]
    next: NotRequired[Next]


class Mute(TypedDict):
    """`Mute` of the description."""

    conversation_id: Id
    until: NotRequired[Time]


class BlockList(TypedDict):
    """`BlockList` of the description."""

    blocks: list[Block]
    next: NotRequired[Next]


class Block(TypedDict):
    """`Block` of the description."""

    user: User


class WebhookTest(TypedDict):
    """The event, as the receiver gets it."""

    id: Id
    number: Count


class WebhookList(TypedDict):
    """`WebhookList` of the description."""

    webhooks: list[Webhook]


class Webhook(TypedDict):
    """`Webhook` of the description."""

    id: Id
    url: WebhookURL
    events: WebhookEvents
    state: Literal['active', 'off', 'failed', 'gone']
    reason: NotRequired[str]
    state_since: Time
    created_at: Time
    secret_count: Literal[1, 2]
    attempts: Count
    failing_since: NotRequired[Time]
    last_status: NotRequired[int]
    last_error: NotRequired[str]
    last_success_at: NotRequired[Time]
    dropped: Count
    secret: NotRequired[WebhookSecret]
