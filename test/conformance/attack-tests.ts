import type { TestPlace } from './test-places.ts'

const GATEWAY = 'services/gateway'
const RESPONSES = `${GATEWAY}/planes/mcp/responses.live.test.ts`
const CLIENT = 'packages/http/client/client.live.test.ts'
const QUORUM = `${GATEWAY}/decide/approvals/quorum/quorum.live.test.ts`
const HIDDEN = `${GATEWAY}/decide/policy/hidden-content.live.test.ts`
const COLLATERAL = 'services/identity/proof/tee/collateral.live.test.ts'
const AUTHORITY = `${GATEWAY}/decide/revocations/authority.live.test.ts`
const RESIDENCY = `${GATEWAY}/decide/residency/residency.live.test.ts`
const FAILOVER = `${GATEWAY}/planes/model/upstream/failover.live.test.ts`
const BATCHES = `${GATEWAY}/planes/model/batches`
const FORWARDER = 'apps/cli/run/forwarder.live.test.ts'
const ISOLATION = 'apps/cli/run/isolation.system.test.ts'
const COUNTING = 'packages/state/postgres/counting/counting.live.test.ts'
const OPERATOR = 'services/operator/start.live.test.ts'

/**
 * Attacks, hostile servers and faults that once had an effect, each with the test that shows it has none. Cost: `npm run fuzz -- -only cost` and
 * `npm run long -- -only hostile`; shares of pools: `pool-tests.ts`. @table
 */
export const attackTests: Readonly<Record<string, TestPlace>> = {
  // Responses
  'a server answers one request within the stream of another': [
    RESPONSES,
    "a response to one request inside another request's stream ends that stream",
  ],
  'a response with another id, two results, or data behind it': [
    RESPONSES,
    'a message that is not the one response to the request fails the call and is not relayed',
  ],
  'a response that is not UTF-8': [RESPONSES, 'invalid UTF-8 fails the call'],
  'a stream that ends before its response': [
    RESPONSES,
    'a stream that ends before its response ends with a refusal under the request id',
  ],
  'another response on a resumed stream': [RESPONSES, 'a resumed stream relays only the response to its request'],
  'an event id that no header can have': [RESPONSES, 'an event id that is not valid in a header is removed'],
  'a server that stops within its head or body': [RESPONSES, 'an upstream that stops sending within '],
  'a request in a batch that would be denied as a call': [
    `${BATCHES}/batches.live.test.ts`,
    'a request that would be denied as a call refuses the batch by its number, and the provider gets nothing',
  ],
  'a batch from a file of before a policy': [
    `${BATCHES}/judged.live.test.ts`,
    'a file is judged again when its batch is created, by what is in force then',
  ],
  'the batch, the file or the results of another agent': [
    `${BATCHES}/batches.live.test.ts`,
    'files and batches of another agent or user are as those that do not exist',
  ],
  'a provider that answers with another batch': [
    `${BATCHES}/batches.live.test.ts`,
    'a provider that answers with another batch is not believed',
  ],
  'a restart between a batch and its results': [
    `${BATCHES}/money.live.test.ts`,
    'the most that a batch can cost is held until its results are read, also after a restart',
  ],
  'results of a batch that are read at two gateways': [
    `${BATCHES}/money.live.test.ts`,
    'two gateways with one database hold and settle a batch once',
  ],
  'a provider that answers with invalid JSON': [
    `${GATEWAY}/planes/model/invalid.live.test.ts`,
    'an invalid response of ',
  ],
  'an agent that answers something else': [
    `${GATEWAY}/planes/a2a/invalid.live.test.ts`,
    'an invalid response of an agent is an upstream_error, and nothing of it is relayed',
  ],
  'a server that imitates a refusal of the gateway': [
    `${GATEWAY}/planes/mcp/refusals/refused-tools.live.test.ts`,
    'a server cannot state a code of the gateway: it is removed from the data of its errors',
  ],
  'an idle connection that its server closed': [
    CLIENT,
    'a call is sent again once when the connection ended before the write, or the write failed',
  ],
  // Memory
  'one-byte chunks from 80 connections': [
    'test/hostile/broker-memory.live.test.ts',
    '80 connections without a token that send one-byte chunks leave the broker at most 64 MiB above idle, and are refused',
  ],
  'a number of tens of thousands of digits': [
    `${GATEWAY}/planes/long-numbers.live.test.ts`,
    'a number with more digits than any amount has is refused in requests and responses of every plane',
  ],
  'connections that leave none for other peers': [
    'packages/http/serve/connections/peers.live.test.ts',
    'a peer at its connection limit gets no more connections, while another peer is served',
  ],
  'tasks of one agent that fill the table of all': [
    `${GATEWAY}/planes/a2a/shares.live.test.ts`,
    'an agent that created as many tasks as its share gets no more, while another agent does',
  ],
  'messages beyond the share of tasks, on which an agent works in vain': [
    `${GATEWAY}/planes/a2a/shares.live.test.ts`,
    'an agent at its share continues tasks that it has, and the response that exceeds the share is refused',
  ],
  'names that resolve slowly, and delay those of other callers': [
    'packages/http/dial/name-lookups.test.ts',
    'slow names of one caller do not delay the names of another',
  ],
  'names as long as a body, in every record of a call': [
    `${GATEWAY}/planes/mcp/long-names.live.test.ts`,
    'a caller cannot fill the ledger or a response with names as long as its body',
  ],
  'hundreds of thousands of releases during an outage of Postgres': [
    COUNTING,
    '150,000 releases owed during an outage of Postgres are bounded, and counting recovers afterwards',
  ],
  'a ledger with very many checkpoints': [
    'packages/ledger/verify.test.ts',
    'a file with 20,000 kept checkpoints is read',
  ],
  // Authority
  'a key of one tenant for a namespace of another, and revocations of tenants': [
    AUTHORITY,
    'a tenant key is valid only for its namespaces, and calls of a revoked tenant are refused',
  ],
  'a file at a provider under another spelling of its id': [
    `${GATEWAY}/planes/model/stored/spellings.live.test.ts`,
    'no spelling of its id leads another caller to a file, or a request to its provider',
  ],
  'a cursor of a list that names a file of another caller': [
    `${GATEWAY}/planes/model/stored/spellings.live.test.ts`,
    'a cursor that names a file of another caller reveals nothing about it',
  ],
  'delegations and forks that outlive the agent that is revoked': [
    AUTHORITY,
    'revoking an agent or a session ends its delegations and forks, also with tokens issued since',
  ],
  'a new session for each token of an external login': [
    `${GATEWAY}/authn/identity/issuers/refreshed.live.test.ts`,
    'the labels of an external caller stay when it refreshes its token, which names no login',
  ],
  'a region that is not in the allowed jurisdiction': [
    RESIDENCY,
    'the region of a model sets its jurisdiction, and an inference profile widens it',
  ],
  'guards and sinks in another jurisdiction': [
    RESIDENCY,
    'guards and sinks are reached only if they comply; an unknown jurisdiction complies only if none is required',
  ],
  'a tier that runs in another jurisdiction': [
    RESIDENCY,
    'a session is refused if its tier runs in a jurisdiction that the data must not reach',
  ],
  'key sets and token endpoints in another jurisdiction': [
    `${GATEWAY}/decide/residency/places.live.test.ts`,
    'keys and tokens are fetched only from endpoints whose jurisdiction complies',
  ],
  'data of a class sent to any model': [
    `${GATEWAY}/targets/models/data-class.live.test.ts`,
    'data of a class goes only to models in the jurisdictions of its rule',
  ],
  'an approver who lost the group before the release': [
    QUORUM,
    'an approver whose next login lacks the group does not count when the call is released again',
  ],
  'an approval rule that became stricter before the release': [
    `${GATEWAY}/decide/approvals/quorum/quorum.test.ts`,
    'quorum and approvers are checked again at release; if they fail, an identical call starts a new approval',
  ],
  'self-approval under another name': [
    QUORUM,
    'the user of a session cannot approve its call with a login that has another name',
  ],
  'one person who votes twice': [QUORUM, 'a person with two logins counts once in a quorum of two'],
  'an approval of arguments that no approver saw whole': [
    `${GATEWAY}/operate/notifications/callbacks/callbacks.live.test.ts`,
    'arguments too long for a message cannot be approved there: no button, no command, no callback',
  ],
  'arguments that a terminal cuts before they are approved': [
    'apps/cli/approvals/watch.test.ts',
    'arguments are shown whole, and what is cut is not approved by a key',
  ],
  'a user who was prompted and said nothing': [
    `${GATEWAY}/authn/ciba/errors.test.ts`,
    'each error of the token endpoint: a prompted user who does not confirm has not agreed',
  ],
  'a Teams message from another channel': [
    `${GATEWAY}/operate/notifications/callbacks/callbacks.live.test.ts`,
    'a message to the outgoing webhook of Teams decides, and gets a reply',
  ],
  'members that are forwarded and that policies do not see': [
    HIDDEN,
    'content beside the arguments that is forwarded is judged by policies: _meta and responses to server requests',
  ],
  'a condition of a policy that costs more than its message may': [
    HIDDEN,
    'a condition over more arguments than its cost budget allows is given up, and a deny then denies',
  ],
  'a token exchanged for an audience of another namespace': [
    `${GATEWAY}/authn/credentials/audiences.live.test.ts`,
    'a server of another namespace receives a token of the user only for an audience listed for its namespace',
  ],
  'a certificate of another trust domain': [
    `${GATEWAY}/operate/listeners/svid.live.test.ts`,
    'a certificate is accepted only for tokens of its trust domain',
  ],
  'two providers at one address': [
    `${GATEWAY}/planes/model/upstream/address.live.test.ts`,
    'providers with the same address have separate paths and circuits',
  ],
  'an SEV-SNP machine that can be debugged or migrated, or is below the minimum TCB or revoked': [
    COLLATERAL,
    'a broker mints nothing for an SEV-SNP machine that may migrate or be debugged, or is outdated or revoked',
  ],
  'a TDX machine that can be debugged, or has an outdated TCB or a revoked certificate': [
    COLLATERAL,
    'a broker mints nothing for a TDX machine that may be debugged, or is outdated or revoked',
  ],
  'a response of the identity provider that belongs to another login of the console': [
    `${GATEWAY}/operate/console/login.live.test.ts`,
    'a code is redeemed only in the login and for the issuer that it was issued for, and no invented cookie is adopted',
  ],
  'a change by the admin API that no record shows': [
    `${GATEWAY}/admin/admin.live.test.ts`,
    'with auditFailurePolicy closed a change is recorded before it is made, and not made when that fails',
  ],
  'a change by the resource API that no record shows': [
    `${GATEWAY}/operate/resource-api/resource-api.live.test.ts`,
    'with auditFailurePolicy closed changes are recorded before they are made, and refused tokens are counted',
  ],
  'guessed admin tokens': [
    `${GATEWAY}/admin/admin.live.test.ts`,
    'refused tokens are counted and logged without the token, and a good one passes at once',
  ],
  'a proof that is stored before its token is checked': [
    'services/attestation/renew/renew.live.test.ts',
    'a renewal with an invalid token stores no proof, and uses nothing of the share',
  ],
  'a nonce from before the restart of the broker': [
    'services/attestation/renew/renew.live.test.ts',
    'a nonce that the broker has forgotten is refused, and a renewal with a new one succeeds',
  ],
  'a ledger filled with refusals': [
    'services/identity/serve/refusals.live.test.ts',
    'a session whose exchanges are refused without end leaves its share of records, and another one its own',
  ],
  // Taint and money
  'an answer of another agent, of exec or of a hosted search without a label': [
    `${GATEWAY}/decide/taint/sources.live.test.ts`,
    ' from an untrusted source labels the session before it is delivered',
  ],
  'labels that a called agent got meanwhile': [
    `${GATEWAY}/targets/a2a/callees.live.test.ts`,
    'a response of an agent labels the caller with the labels that its session got while it worked',
  ],
  'options that multiply the price': [
    `${GATEWAY}/decide/budgets/pricing/options.test.ts`,
    'options of the caller multiply the price, and hour-long cache writes have their own price',
  ],
  'a key that the provider refuses': [FAILOVER, 'where an endpoint fails because '],
  'requests per minute beyond the limit of all replicas': [
    FAILOVER,
    'a route with one endpoint refuses calls above its requests per minute without forwarding them',
  ],
  'a short value that a custom detector names': [
    HIDDEN,
    'a custom detector finds short values in strings, names and numbers of a call',
  ],
  'a value that one kind of redaction finds and another one does not': [
    `${GATEWAY}/content/dlp/redaction.test.ts`,
    'a text in pieces and the same text in one piece lose the same, also where characters are escaped',
  ],
  'text like base64 that is not searched': [
    `${GATEWAY}/content/dlp/dlp.live.test.ts`,
    'a message with more text than maxScanBytes is refused, also for a file in base64',
  ],
  'a guard that is switched off by load': [
    `${GATEWAY}/content/guards/saturated.test.ts`,
    'a session beyond its share of a guard is refused even with failOpen, while the guard serves other sessions',
  ],
  // Faults
  'a descriptor that is closed twice': [
    'packages/state/file/owned-file.test.ts',
    'a file is closed once, and a descriptor reused by another file is never touched',
  ],
  'a failing disk below the ledger': [
    'packages/ledger/writer/faults.test.ts',
    'under every failing system call the ledger loses nothing acknowledged, uses no foreign descriptor, and recovers',
  ],
  'a failing disk below a journal': [
    'packages/state/faults.test.ts',
    'under every failing system call a journal loses nothing acknowledged, uses no foreign descriptor, and recovers',
  ],
  'identical held calls at several replicas': [
    `${GATEWAY}/operate/state-backend/three-gateways.live.test.ts`,
    ' gateways: one question, one execution for its grant, no hang',
  ],
  'a database that went back in time': [
    `${GATEWAY}/operate/state-backend/continuity.live.test.ts`,
    'when the database becomes an older copy under load three gateways deny every call until plat state adopt',
  ],
  'a reservation that runs after its release': [COUNTING, 'a take that runs after its release leaves no hold'],
  'clocks that differ': [
    COUNTING,
    'a cap of 5 admits exactly 5 at gateways whose clocks differ by an hour, also after the end of the window',
  ],
  'one slow transaction': [
    COUNTING,
    'a counter locked by a paused transaction stops only its own calls, and leaves nothing behind',
  ],
  'a gateway that is ready while it denies': [
    `${GATEWAY}/composition/readiness.live.test.ts`,
    'while the list of revocations is broken /readyz says so, and a denied MCP call has status 503 and its JSON-RPC error',
  ],
  'calls in flight at the end of a shutdown': [
    `${GATEWAY}/operate/listeners/drain.live.test.ts`,
    'calls in flight at the end of the drain time get a retryable error',
  ],
  'a full disk below the lists of segments': [
    `${GATEWAY}/evidence/audit/audit.test.ts`,
    'a full disk under the lists of segments is counted and logged, records go on, and both lists are written when there is room',
  ],
  'a ledger that grows without end': [
    `${GATEWAY}/composition/retention.live.test.ts`,
    'a removed segment is archived and listed; chain, receipts and readers hold; and it is read again when it is copied back',
  ],
  'a user who is revoked while the key service of connected accounts is unavailable': [
    `${GATEWAY}/authn/token-vault/key-service.live.test.ts`,
    'accounts of users who are revoked while the key service is away are removed when it is back',
  ],
  'a legal hold that is made while a segment is about to leave': [
    `${GATEWAY}/composition/retention-attacks.live.test.ts`,
    'a hold that is made while a segment is about to leave keeps every file that is there when it is in force',
  ],
  'a segment whose file cannot be removed': [
    `${GATEWAY}/composition/retention-attacks.live.test.ts`,
    'a file that cannot be removed is logged and counted at each pass, and is removed when it can be',
  ],
  'a task that is requested at one replica as soon as another one created it': [
    `${GATEWAY}/planes/mcp/tasks/replicas.live.test.ts`,
    'a task is known at another replica as soon as its client has its id',
  ],
  'guessed ids of tasks, each of which reads the database': [
    `${GATEWAY}/planes/mcp/tasks/replicas.live.test.ts`,
    'a task of another session stays unknown there, and guessed ids read the database within a share only',
  ],
  'guessed sessions of the console, each of which reads the database': [
    `${GATEWAY}/operate/console/replicas.live.test.ts`,
    'guessed sessions read the database within the share of their peer, and a session of another replica is found meanwhile',
  ],
  'an error of the gateway that is not logged': [`${GATEWAY}/planes/bugs.test.ts`, 'a bug of the gateway in '],
  'a gateway.json that is half written, unreadable or replaced by a link': [
    'apps/cli/up/gateway-json.live.test.ts',
    'a file that is half written, empty, a folder, huge or a link to another file never takes the redaction away',
  ],
  'a ledger whose end was cut off': [
    'apps/cli/audit/audit.test.ts',
    'verify answers 6 for a ledger whose last records were cut off, without being given any file',
  ],
  'a start on an older copy of the ledger': [
    `${GATEWAY}/evidence/audit/checkpoints.live.test.ts`,
    'a gateway does not start on an older copy of its ledger',
  ],
  'an object that no ConfigMap holds': [
    OPERATOR,
    'an output that is refused keeps no other from being written, and the probe and a metric name it',
  ],
  'a revocation that waits for another output': [
    OPERATOR,
    'a revocation is written while the API server holds back another output',
  ],
  'a session that ends while the broker hangs': [
    'services/operator/sessions/sessions.live.test.ts',
    'a session ends while the broker is unavailable',
  ],
  'YAML that kubectl reads differently': [
    'packages/kubernetes/yaml/yaml.test.ts',
    'YAML has the same meaning as in kubectl, or is refused',
  ],
  // plat run
  'a path that leads to another host': [
    FORWARDER,
    'a path that a URL parser reads as another host goes to the gateway, and the token with it',
  ],
  'a gateway with https': [FORWARDER, 'a gateway with https is reached over TLS'],
  'a program that reads the keys of plat': [ISOLATION, 'an isolated program sees of .plat only the folder of its run'],
  'a .plat of another user': [
    'apps/cli/shared/home.test.ts',
    'a .plat that leads to a folder of another user is refused',
  ],
  'keys in git': ['apps/cli/shared/home.test.ts', 'git add -A does not stage keys or tokens'],
}
