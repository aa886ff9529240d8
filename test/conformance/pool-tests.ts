import type { PoolName } from '@plat/core'
import type { TestPlace } from './test-places.ts'

const GATEWAY = 'services/gateway'
/** Tests in a loop over names of pools. */
export const EACH = 'a caller at its share of '
const PEERS: TestPlace = [
  'packages/http/serve/connections/peers.live.test.ts',
  'a peer at its connection limit gets no more connections, while another peer is served',
]
const BROKER: TestPlace = ['services/identity/state/shares.test.ts', EACH]
const PROOFS: TestPlace = ['packages/tokens/dpop/proof.test.ts', EACH]
const SPANS: TestPlace = [
  `${GATEWAY}/evidence/otel/export/exporter.live.test.ts`,
  'an agent whose spans fill its share loses further ones, while spans of another agent are kept',
]

/** The test of each pool in which one caller uses all of its share while another is served. @table */
export const poolTests: Readonly<Record<PoolName, TestPlace>> = {
  connections: PEERS,
  admin_connections: PEERS,
  bootstrap_connections: PEERS,
  live_calls: [
    `${GATEWAY}/pipeline/live.test.ts`,
    'an agent whose sessions use up its share of live calls leaves room for others, and gets room again when its calls end',
  ],
  ending_calls: [
    `${GATEWAY}/pipeline/live.test.ts`,
    'an agent at its share of requests that end work is refused while another is served',
  ],
  call_bytes: [
    `${GATEWAY}/planes/mcp/memory.live.test.ts`,
    'an agent whose slow bodies use up its share is refused with overloaded, and another agent is served',
  ],
  upload_bytes: [
    `${GATEWAY}/planes/model/media.live.test.ts`,
    'a session that fills its share of the disk is refused while another uploads',
  ],
  upstream_connections: [
    'packages/http/client/client.live.test.ts',
    'a caller at its connection limit is refused while another is served',
  ],
  name_lookups: [
    'packages/http/dial/name-lookups.test.ts',
    'slow names of one caller do not delay the names of another',
  ],
  guard_texts: [
    `${GATEWAY}/content/guards/types.live.test.ts`,
    'a session at its share of texts is refused, while the guard serves others',
  ],
  task_bindings: [
    `${GATEWAY}/call/bindings/bindings.test.ts`,
    'an agent at its share of tasks gets no more, while another agent does',
  ],
  mcp_tasks: [
    `${GATEWAY}/planes/mcp/tasks/tasks.test.ts`,
    'a session at its share of tasks gets no more, while another session does; an ended task is forgotten after an hour',
  ],
  unknown_ids: [
    `${GATEWAY}/call/bindings/look-ups.test.ts`,
    'a session that guesses ids uses its share of reads for a second, while others look up',
  ],
  stored_responses: [
    `${GATEWAY}/targets/models/stored/contents.test.ts`,
    'an agent at its share of stored responses loses only its oldest for a new one, while another agent loses none',
  ],
  stored_files: [
    `${GATEWAY}/targets/models/stored/contents.test.ts`,
    'an agent at its share of stored files can store no more, while another agent can',
  ],
  memory_bytes: [
    `${GATEWAY}/builtin/memory/memory.test.ts`,
    'an owner or namespace at its share of memory is refused, while others are served',
  ],
  pending_approvals: [
    `${GATEWAY}/decide/approvals/approvals.test.ts`,
    'an agent that opens many sessions cannot fill the backlog: another agent is served',
  ],
  approval_arguments: [
    `${GATEWAY}/decide/approvals/store/whole-arguments.test.ts`,
    'a session at its share of arguments gets no more stored, while another session does',
  ],
  notifications: [
    `${GATEWAY}/operate/notifications/delivery/delivery.test.ts`,
    'an approval is delivered before the alerts that wait, however many there are',
  ],
  nonces: BROKER,
  bound_tokens: BROKER,
  used_credentials: BROKER,
  transactions: BROKER,
  holder_proofs: BROKER,
  bootstrap_requests: [
    'services/identity/state/shares.test.ts',
    'a peer at its share of bootstrap requests is refused while another is served',
  ],
  dpop_proofs: PROOFS,
  connected_accounts: [
    `${GATEWAY}/authn/token-vault/store/accounts.test.ts`,
    'a user who connects an account for each tenant uses up one share, and another user connects',
  ],
  connect_flows: [
    `${GATEWAY}/authn/token-vault/flow/flows.test.ts`,
    'a user who completes flows without end uses up one share, and another user connects',
  ],
  resource_watches: [
    `${GATEWAY}/operate/resource-api/resource-api.live.test.ts`,
    'a caller at its share of watches is refused another, while a second caller watches',
  ],
  exchanged_tokens: [
    `${GATEWAY}/authn/credentials/endpoint.live.test.ts`,
    'an agent at its share of exchanged tokens exchanges anew for each call, while those of another agent are kept',
  ],
  callback_marks: [
    `${GATEWAY}/operate/notifications/callbacks/marks.test.ts`,
    'a notifier that used its share of callbacks is refused until they expire, and another one is served',
  ],
  capture_bytes: [
    `${GATEWAY}/content/captures/captures.test.ts`,
    'captures of a namespace at its share of the queue are dropped, while another namespace is captured',
  ],
  abandoned_calls: [
    `${GATEWAY}/planes/mcp/upstream/abandoned.test.ts`,
    'above the share of a session its oldest abandoned call is aborted, and those of other sessions are not',
  ],
  mcp_sessions: [
    `${GATEWAY}/planes/mcp/shared/sessions.test.ts`,
    'an agent that exceeds its share loses its own oldest session; another agent keeps its own',
  ],
  counters: [
    'packages/state/limits/local-limits.test.ts',
    'a caller whose keys fill its share of counters is refused, another is counted, and windows that are over make room',
  ],
  template_counters: [
    `${GATEWAY}/decide/budgets/caps.test.ts`,
    'an agent with invented users uses its share of a template only, and what it used ends with the window',
  ],
  open_holds: [
    'packages/state/limits/local-limits.test.ts',
    'a session at its share of open holds is refused, others are served, and what is settled or expired makes room',
  ],
  queued_counts: [
    'packages/state/postgres/counting/counting.live.test.ts',
    'a session whose reservations wait for a locked counter uses its share only, and leaves no unit behind',
  ],
  queued_keys: [
    'packages/state/postgres/claims/claims.live.test.ts',
    'a caller whose keys wait uses its share only, and leaves no unit behind',
  ],
  journal_appends: [
    'packages/state/shared-appends.test.ts',
    'a session at its share of pending appends is refused while other sessions and journals are served',
  ],
  state_requests: [
    'packages/state/postgres/counting/counting.live.test.ts',
    'a journal that waits for connections uses its share of them only',
  ],
  set_requests: [
    'packages/state/postgres/once-sets.live.test.ts',
    'a caller whose requests wait for the database uses its share of them only',
  ],
  alerted_windows: [
    `${GATEWAY}/decide/budgets/alerts.test.ts`,
    'an agent at its share of windows loses its own oldest, and those of others stay',
  ],
  console_sessions: [
    `${GATEWAY}/admin/browser/sessions.test.ts`,
    'a person keeps the newest sessions of a share, and others are served until all are in use',
  ],
  unknown_console_sessions: [
    `${GATEWAY}/admin/browser/sessions.test.ts`,
    'a peer that guesses sessions reads the state within its share, and others are found',
  ],
  event_streams: [
    `${GATEWAY}/operate/events/events.live.test.ts`,
    'a stream ends with the login, and a caller that opens its share of them leaves streams to others',
  ],
  key_service_requests: [
    'packages/key-services/faults.live.test.ts',
    'a service that does not respond holds no caller for more than 10 s, and the queue has a total and shares',
  ],
  live_views: [
    `${GATEWAY}/operate/live-view/limits.live.test.ts`,
    'a caller at its share of views, and a session at its, are refused while others are shown',
  ],
  ledger_readers: [
    `${GATEWAY}/admin/throttle/ledger-readers.live.test.ts`,
    'a caller whose requests that read the ledger fill its share is refused, and another one is served',
  ],
  tainted_sessions: [
    `${GATEWAY}/decide/taint/taints.test.ts`,
    'labels and sessions are bounded: calls beyond the bound are refused, and nothing is evicted',
  ],
  listed_sessions: [
    `${GATEWAY}/operate/sessions/book.test.ts`,
    'an agent at its share loses its own oldest sessions, and a full list those of the agents with the most',
  ],
  session_activity: [
    `${GATEWAY}/operate/activity/activity.test.ts`,
    'a namespace at its share of an interval waits for a later one, while another namespace is written',
  ],
  reported_sessions: [
    `${GATEWAY}/operate/sandbox-usage/book.test.ts`,
    'reports are accepted up to the share of a namespace, other namespaces are served, and old sessions make room',
  ],
  spans: SPANS,
  span_bytes: SPANS,
  proofs: PROOFS,
  challenges: [
    'services/attestation/shares.test.ts',
    'a release at its share of challenges gets no more, while another release does',
  ],
  releases: [
    'services/attestation/release/releases.test.ts',
    'a namespace at its share of releases is refused, another namespace is served, and an end makes room',
  ],
  pending_revocations: [
    'services/attestation/shares.test.ts',
    'revocations of a namespace at its share are dropped, while those of another namespace wait',
  ],
  stdio_processes: [
    'apps/cli/stdio/stdio.system.test.ts',
    'a session that uses all of its processes is refused another, and others are served',
  ],
  recorded_refusals: [
    'services/identity/serve/refusals.live.test.ts',
    'a session whose exchanges are refused without end leaves its share of records, and another one its own',
  ],
}
