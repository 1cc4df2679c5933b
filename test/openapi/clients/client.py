"""The examples of docs/first-steps.md by a client that openapi-python-client made: RECORDER and TOKEN in, a summary as JSON out."""

import json
import os
import time

from recorder_client import AuthenticatedClient
from recorder_client.api.archive import get_current_recording, list_segments
from recorder_client.api.cameras import get_camera
from recorder_client.api.health import get_ready
from recorder_client.api.node import get_node_metrics
from recorder_client.api.playback import get_file
from recorder_client.models import ErrorCode

token = os.environ["TOKEN"]
api = AuthenticatedClient(base_url=os.environ["RECORDER"], token=token)

ready = get_ready.sync(client=api)
camera = get_camera.sync("gate", client=api)
segments = list_segments.sync("gate", client=api, from_=time.time() - 3600)
segment = segments.archive[0]
current = get_current_recording.sync("gate", client=api)
metrics = get_node_metrics.sync(client=api)
unknown = get_camera.sync("nobody", client=api)
assert unknown.code is ErrorCode.UNKNOWN_CAMERA, unknown
playback = AuthenticatedClient(base_url=camera.node.playback, token=token)
file = get_file.sync_detailed(segment.filename, client=playback)

print(
    json.dumps(
        {
            "status": ready.status,
            "camera": camera.name,
            "width": camera.codecs.video.width,
            "filename": segment.filename,
            "start_ms": segment.start_ms,
            "current": current.filename,
            "node": metrics.node_name,
            "code": unknown.code,
            "box": file.content[4:8].decode(),
        }
    )
)
