-- Wireshark dissector of the Rouse sync protocol, version 1: framing.md, registry.md, sync.proto.
--
--   tshark -X lua_script:rouse.lua -d tcp.port==7443,rouse -r capture.pcapng
--
-- Over TLS it is chosen by ALPN (rouse/1), once Wireshark has the session's secrets; on a plain
-- listener say the port with "Decode As" or -d. Field names inside bodies come from sync.proto, if
-- its folder is among the search paths of Wireshark's Protobuf dissector:
--
--   -o 'uat:protobuf_search_paths:"PROTOCOL FOLDER","TRUE"'

local rouse = Proto("rouse", "Rouse sync protocol")

-- type = { frame, message of sync.proto }
local FRAMES = {
  [0x01] = { "HELLO", "Hello" },
  [0x02] = { "CHALLENGE", "Challenge" },
  [0x03] = { "AUTHENTICATE", "Authenticate" },
  [0x04] = { "WELCOME", "Welcome" },
  [0x10] = { "SYNC", "Sync" },
  [0x11] = { "DELTA", "Delta" },
  [0x12] = { "SYNC_REQUEST", "SyncRequest" },
  [0x13] = { "ACK", "Ack" },
  [0x20] = { "MUTATE", "Mutation" },
  [0x21] = { "MUTATION_RESULT", "MutationResult" },
  [0x22] = { "FETCH", "Fetch" },
  [0x23] = { "PAGE", "Page" },
  [0x24] = { "SNAPSHOT", "Snapshot" },
  [0x25] = { "SNAPSHOT_PAGE", "SnapshotPage" },
  [0x30] = { "SIGNAL", "Signal" },
  [0x31] = { "APP_STATE", "AppState" },
  [0x32] = { "DIGEST", "Digest" },
  [0x33] = { "DIGEST_RESULT", "DigestResult" },
  [0x40] = { "PING", "Ping" },
  [0x41] = { "PONG", "Pong" },
  [0x42] = { "DRAIN", "Drain" },
  [0x43] = { "ERROR", "Error" },
  [0x44] = { "CLOSE", "Close" },
}

local HEADER = 8
local BODY_MAX = 262144
local MORE, IGNORABLE = 1, 4

local names = {}
for number, frame in pairs(FRAMES) do names[number] = frame[1] end

local fields = {
  length = ProtoField.uint24("rouse.length", "Length of the body", base.DEC),
  type = ProtoField.uint8("rouse.type", "Type", base.HEX, names),
  frame = ProtoField.string("rouse.frame", "Frame"),
  more = ProtoField.bool("rouse.flags.more", "More answers follow", 8, nil, MORE),
  ignorable = ProtoField.bool("rouse.flags.ignorable", "Ignorable", 8, nil, IGNORABLE),
  reserved = ProtoField.uint8("rouse.reserved", "Reserved", base.HEX),
  request = ProtoField.uint16("rouse.request", "Request", base.DEC),
  body = ProtoField.bytes("rouse.body", "Body"),
}
rouse.fields = fields

local experts = {
  flags = ProtoExpert.new(
    "rouse.bad_flags", "Flags that version 1 does not have (FRM-6)",
    expert.group.MALFORMED, expert.severity.ERROR),
  reserved = ProtoExpert.new(
    "rouse.bad_reserved", "Reserved byte is not 0 (FRM-7)",
    expert.group.MALFORMED, expert.severity.ERROR),
  unknown = ProtoExpert.new(
    "rouse.unknown_type", "Unknown type without IGNORABLE (FRM-9)",
    expert.group.MALFORMED, expert.severity.ERROR),
  large = ProtoExpert.new(
    "rouse.too_large", "Body above every limit (FRM-13)",
    expert.group.MALFORMED, expert.severity.ERROR),
}
rouse.experts = experts

local protobuf = Dissector.get("protobuf")

local function frame_length(buffer, pinfo, offset)
  return HEADER + buffer(offset, 3):uint()
end

local function dissect_body(buffer, pinfo, tree, message)
  tree:add(fields.body, buffer)
  pinfo.private["pb_msg_type"] = "message,rouse.v1." .. message
  pcall(Dissector.call, protobuf, buffer:tvb(), pinfo, tree)
end

local function dissect_frame(buffer, pinfo, root)
  local length = buffer(0, 3):uint()
  local number = buffer(3, 1):uint()
  local flags = buffer(4, 1):uint()
  local request = buffer(6, 2):uint()
  local frame = FRAMES[number]
  local name = frame and frame[1] or string.format("0x%02X", number)

  local tree = root:add(rouse, buffer(), "Rouse " .. name .. ", " .. length .. " bytes")
  tree:add(fields.length, buffer(0, 3))
  tree:add(fields.type, buffer(3, 1))
  tree:add(fields.frame, buffer(3, 1), name)
  tree:add(fields.more, buffer(4, 1))
  tree:add(fields.ignorable, buffer(4, 1))
  tree:add(fields.reserved, buffer(5, 1))
  tree:add(fields.request, buffer(6, 2))

  local is_ignorable = bit.band(flags, IGNORABLE) ~= 0
  if bit.band(flags, bit.bnot(MORE + IGNORABLE)) % 256 ~= 0 then
    tree:add_proto_expert_info(experts.flags)
  end
  if buffer(5, 1):uint() ~= 0 then tree:add_proto_expert_info(experts.reserved) end
  if not frame and not is_ignorable then tree:add_proto_expert_info(experts.unknown) end
  if length > BODY_MAX then tree:add_proto_expert_info(experts.large) end

  local column = request ~= 0 and name .. " @" .. request or name
  pinfo.cols.protocol = "Rouse"
  if pinfo.cols.info then pinfo.cols.info:append(" " .. column) end
  if length > 0 and frame then dissect_body(buffer(HEADER), pinfo, tree, frame[2]) end
  return buffer:len()
end

function rouse.dissector(buffer, pinfo, tree)
  dissect_tcp_pdus(buffer, tree, HEADER, frame_length, dissect_frame)
  return buffer:len()
end

DissectorTable.get("tls.alpn"):add("rouse/1", rouse)
DissectorTable.get("tcp.port"):add_for_decode_as(rouse)
