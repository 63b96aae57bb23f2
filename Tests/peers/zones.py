"""What Python's zoneinfo makes of every zone of the system, for ZoneTests: a line a zone, its
name and its seconds east of UTC at the moments that are given as arguments."""

import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, available_timezones

start = datetime(1970, 1, 1, tzinfo=timezone.utc)
moments = [start + timedelta(seconds=int(word)) for word in sys.argv[1:]]
for name in sorted(available_timezones() - {"localtime", "posixrules"}):
    zone = ZoneInfo(name)
    print(name, *(int(at.astimezone(zone).utcoffset().total_seconds()) for at in moments))
