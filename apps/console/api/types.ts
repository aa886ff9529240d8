// Generated from docs/reference/openapi.json by `node apps/console/api/generate.ts`. @table

/** Requests and responses of each route of the admin API. */
export interface Api {
  'GET /openapi.json': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly openapi: string }
  }
  'GET /v1/auth/config': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly mode: "token" | "oidc" | "both"; readonly issuer?: string; readonly audience?: string; readonly clientID?: string; readonly scopes?: readonly (string)[]; readonly resource?: string }
  }
  'GET /v1/whoami': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly by: string; readonly roles: readonly (string)[]; readonly namespaceRoles: { readonly [name: string]: readonly (string)[] }; readonly tenantRoles: { readonly [name: string]: readonly (string)[] } }
  }
  'POST /v1/console/links': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly code: string; readonly path: string; readonly expiresAt: string }
  }
  'GET /v1/events': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: undefined
  }
  'GET /v1/approvals': {
    readonly params: {  }
    readonly query: { readonly state?: string; readonly namespace?: string; readonly agent?: string; readonly session?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly state: "pending" | "approved" | "denied" | "expired" | "cancelled" | "used"; readonly session: string; readonly namespace: string; readonly agent: string; readonly user: string | null; readonly server: string; readonly tool: string | null; readonly method: string; readonly policy: string | null; readonly rule: string | null; readonly reason: string; readonly argsSha256: string | null; readonly argsBytes: number; readonly preview: { readonly mode: "hash" | "redacted" | "full"; readonly text: string; readonly truncated: boolean } | null; readonly wholeArguments?: string | null; readonly quorum: { readonly minApprovers: number; readonly approverGroups: readonly (string)[]; readonly userConfirmation: { readonly state: "waiting" | "asked" | "confirmed" | "waived"; readonly code: string | null } | null; readonly needed: number; readonly given: number; readonly votes: readonly ({ readonly by: string; readonly verdict: "approve" | "deny"; readonly reason: string; readonly at: string; readonly via?: string; readonly scope?: "session" })[] }; readonly isRepeatable?: boolean; readonly createdAt: string; readonly expiresAt: string })[]; readonly nextCursor: string | null }
  }
  'GET /v1/approvals/{id}': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly id: string; readonly state: "pending" | "approved" | "denied" | "expired" | "cancelled" | "used"; readonly session: string; readonly namespace: string; readonly agent: string; readonly user: string | null; readonly server: string; readonly tool: string | null; readonly method: string; readonly policy: string | null; readonly rule: string | null; readonly reason: string; readonly argsSha256: string | null; readonly argsBytes: number; readonly preview: { readonly mode: "hash" | "redacted" | "full"; readonly text: string; readonly truncated: boolean } | null; readonly wholeArguments?: string | null; readonly quorum: { readonly minApprovers: number; readonly approverGroups: readonly (string)[]; readonly userConfirmation: { readonly state: "waiting" | "asked" | "confirmed" | "waived"; readonly code: string | null } | null; readonly needed: number; readonly given: number; readonly votes: readonly ({ readonly by: string; readonly verdict: "approve" | "deny"; readonly reason: string; readonly at: string; readonly via?: string; readonly scope?: "session" })[] }; readonly isRepeatable?: boolean; readonly createdAt: string; readonly expiresAt: string }
  }
  'GET /v1/approvals/{id}/arguments': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly id: string; readonly argsSha256: string | null; readonly text: string }
  }
  'POST /v1/approvals/{id}/approve': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: { readonly reason?: string; readonly argsSha256?: string; readonly scope?: "call" | "session" }
    readonly result: { readonly id: string; readonly state: "pending" | "approved" | "denied" | "expired" | "cancelled" | "used"; readonly session: string; readonly namespace: string; readonly agent: string; readonly user: string | null; readonly server: string; readonly tool: string | null; readonly method: string; readonly policy: string | null; readonly rule: string | null; readonly reason: string; readonly argsSha256: string | null; readonly argsBytes: number; readonly preview: { readonly mode: "hash" | "redacted" | "full"; readonly text: string; readonly truncated: boolean } | null; readonly wholeArguments?: string | null; readonly quorum: { readonly minApprovers: number; readonly approverGroups: readonly (string)[]; readonly userConfirmation: { readonly state: "waiting" | "asked" | "confirmed" | "waived"; readonly code: string | null } | null; readonly needed: number; readonly given: number; readonly votes: readonly ({ readonly by: string; readonly verdict: "approve" | "deny"; readonly reason: string; readonly at: string; readonly via?: string; readonly scope?: "session" })[] }; readonly isRepeatable?: boolean; readonly createdAt: string; readonly expiresAt: string; readonly missing: number }
  }
  'POST /v1/approvals/{id}/deny': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: { readonly reason?: string; readonly argsSha256?: string }
    readonly result: { readonly id: string; readonly state: "pending" | "approved" | "denied" | "expired" | "cancelled" | "used"; readonly session: string; readonly namespace: string; readonly agent: string; readonly user: string | null; readonly server: string; readonly tool: string | null; readonly method: string; readonly policy: string | null; readonly rule: string | null; readonly reason: string; readonly argsSha256: string | null; readonly argsBytes: number; readonly preview: { readonly mode: "hash" | "redacted" | "full"; readonly text: string; readonly truncated: boolean } | null; readonly wholeArguments?: string | null; readonly quorum: { readonly minApprovers: number; readonly approverGroups: readonly (string)[]; readonly userConfirmation: { readonly state: "waiting" | "asked" | "confirmed" | "waived"; readonly code: string | null } | null; readonly needed: number; readonly given: number; readonly votes: readonly ({ readonly by: string; readonly verdict: "approve" | "deny"; readonly reason: string; readonly at: string; readonly via?: string; readonly scope?: "session" })[] }; readonly isRepeatable?: boolean; readonly createdAt: string; readonly expiresAt: string; readonly missing: number }
  }
  'GET /v1/session-approvals': {
    readonly params: {  }
    readonly query: { readonly namespace?: string; readonly agent?: string; readonly session?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly namespace: string; readonly agent: string; readonly session: string; readonly user: string | null; readonly server: string; readonly tool: string; readonly policy: string | null; readonly rule: string | null; readonly taints: readonly (string)[]; readonly newTaints?: readonly (string)[]; readonly by: readonly (string)[]; readonly createdAt: string; readonly expiresAt: string })[]; readonly nextCursor: string | null }
  }
  'DELETE /v1/session-approvals/{id}': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: undefined
    readonly result: undefined
  }
  'GET /v1/revocations': {
    readonly params: {  }
    readonly query: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly target: { readonly [name: string]: string | true }; readonly mode: "revoke" | "suspend"; readonly reason: string; readonly createdAt: string; readonly expiresAt: string | null; readonly source?: "breakglass" | "file"; readonly cut?: number })[]; readonly nextCursor: string | null }
  }
  'POST /v1/revocations': {
    readonly params: {  }
    readonly query: {  }
    readonly body: { readonly target: { readonly jti?: string; readonly session?: string; readonly agent?: string; readonly namespace?: string; readonly user?: string; readonly tenant?: string; readonly all?: true }; readonly mode?: "revoke" | "suspend"; readonly reason?: string; readonly expiresAt?: string | null }
    readonly result: { readonly id: string; readonly target: { readonly [name: string]: string | true }; readonly mode: "revoke" | "suspend"; readonly reason: string; readonly createdAt: string; readonly expiresAt: string | null; readonly source?: "breakglass" | "file"; readonly cut?: number }
  }
  'POST /v1/revocations/preview': {
    readonly params: {  }
    readonly query: {  }
    readonly body: { readonly target: { readonly jti?: string; readonly session?: string; readonly agent?: string; readonly namespace?: string; readonly user?: string; readonly tenant?: string; readonly all?: true } }
    readonly result: { readonly calls: { readonly total: number; readonly long: number }; readonly tokens: number; readonly sessions: { readonly total: number; readonly delegated: number; readonly forked: number; readonly items: readonly ({ readonly id: string; readonly user: string | null; readonly relation: "own" | "delegated" | "forked"; readonly calls: number; readonly pendingApprovals: number })[] }; readonly pendingApprovals: number }
  }
  'DELETE /v1/revocations/{id}': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: undefined
    readonly result: undefined
  }
  'GET /v1/pins': {
    readonly params: {  }
    readonly query: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly mode: "learn" | "enforce"; readonly lastSeen: string | null; readonly observedTools: number; readonly driftedTools: readonly (string)[]; readonly unpinnedTools: number })[]; readonly nextCursor: string | null }
  }
  'GET /v1/pins/{namespace}/{name}': {
    readonly params: { readonly namespace: string; readonly name: string }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly id: string; readonly mode: "learn" | "enforce"; readonly lastSeen: string | null; readonly observedTools: number; readonly driftedTools: readonly (string)[]; readonly unpinnedTools: number; readonly onChange: "hide" | "approve" | "alert"; readonly allowUnpinned: boolean; readonly tools: readonly ({ readonly tool: string; readonly digest: string | null; readonly standing: "pinned" | "drifted" | "unpinned" | null; readonly pins: readonly (string)[]; readonly source: "resources" | "journal" | null; readonly rejected: boolean })[] }
  }
  'GET /v1/pins/{namespace}/{name}/definition': {
    readonly params: { readonly namespace: string; readonly name: string }
    readonly query: { readonly tool?: string }
    readonly body: undefined
    readonly result: { readonly tool: string; readonly digest: string | null; readonly standing: "pinned" | "drifted" | "unpinned" | null; readonly pins: readonly (string)[]; readonly source: "resources" | "journal" | null; readonly rejected: boolean; readonly offered: string | null; readonly pinned: readonly (string | null)[] }
  }
  'POST /v1/pins/{namespace}/{name}/accept': {
    readonly params: { readonly namespace: string; readonly name: string }
    readonly query: {  }
    readonly body: { readonly tool: string; readonly digest: string }
    readonly result: { readonly id: string; readonly mode: "learn" | "enforce"; readonly lastSeen: string | null; readonly observedTools: number; readonly driftedTools: readonly (string)[]; readonly unpinnedTools: number; readonly onChange: "hide" | "approve" | "alert"; readonly allowUnpinned: boolean; readonly tools: readonly ({ readonly tool: string; readonly digest: string | null; readonly standing: "pinned" | "drifted" | "unpinned" | null; readonly pins: readonly (string)[]; readonly source: "resources" | "journal" | null; readonly rejected: boolean })[] }
  }
  'POST /v1/pins/{namespace}/{name}/reject': {
    readonly params: { readonly namespace: string; readonly name: string }
    readonly query: {  }
    readonly body: { readonly tool: string; readonly digest: string }
    readonly result: { readonly id: string; readonly mode: "learn" | "enforce"; readonly lastSeen: string | null; readonly observedTools: number; readonly driftedTools: readonly (string)[]; readonly unpinnedTools: number; readonly onChange: "hide" | "approve" | "alert"; readonly allowUnpinned: boolean; readonly tools: readonly ({ readonly tool: string; readonly digest: string | null; readonly standing: "pinned" | "drifted" | "unpinned" | null; readonly pins: readonly (string)[]; readonly source: "resources" | "journal" | null; readonly rejected: boolean })[] }
  }
  'GET /v1/sessions': {
    readonly params: {  }
    readonly query: { readonly namespace?: string; readonly agent?: string; readonly session?: string; readonly user?: string; readonly label?: string; readonly from?: string; readonly to?: string; readonly denied?: boolean; readonly spent?: boolean; readonly pending?: boolean; readonly labelled?: boolean; readonly q?: string; readonly order?: "id" | "activity"; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly namespace: string; readonly agent: string; readonly session: string; readonly user: string | null; readonly tier: string; readonly startedAt: string; readonly lastActivity: string; readonly calls: number; readonly denied: number; readonly pendingApprovals: number; readonly taints: readonly (string)[]; readonly views: readonly ("watch" | "control")[]; readonly spent: { readonly micros: number; readonly currency: string } })[]; readonly nextCursor: string | null }
  }
  'GET /v1/sessions/{id}/timeline': {
    readonly params: { readonly id: string }
    readonly query: { readonly tenant?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly seq: number; readonly hash: string; readonly prev: string; readonly rec: { readonly kind: string; readonly at: string }; readonly v: 1 })[]; readonly nextCursor: string | null }
  }
  'GET /v1/sessions/{id}/view/watch': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly mode: "watch" | "control"; readonly protocol: "rfb" }
  }
  'GET /v1/sessions/{id}/view/control': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly mode: "watch" | "control"; readonly protocol: "rfb" }
  }
  'GET /v1/sessions/{id}/view/page/{path}': {
    readonly params: { readonly id: string; readonly path: string }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly [name: string]: unknown }
  }
  'GET /v1/budgets': {
    readonly params: {  }
    readonly query: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly budget: string; readonly source: string | null; readonly scope: string; readonly window: "session" | "day" | "month"; readonly period: string; readonly subject: string | null; readonly usedAt: string | null; readonly cap: { readonly micros: number; readonly currency: string } | { readonly tokens: number }; readonly spent: { readonly micros: number; readonly currency: string } | { readonly tokens: number }; readonly held: { readonly micros: number; readonly currency: string } | { readonly tokens: number }; readonly left: { readonly micros: number; readonly currency: string } | { readonly tokens: number }; readonly resetsAt: string | null; readonly alerts: readonly (number)[] })[]; readonly nextCursor: string | null }
  }
  'GET /v1/memory': {
    readonly params: {  }
    readonly query: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly namespace: string; readonly store: string; readonly scope: "agent" | "session" | "user"; readonly who: string; readonly items: number; readonly bytes: number })[]; readonly nextCursor: string | null }
  }
  'DELETE /v1/memory/users/{user}': {
    readonly params: { readonly user: string }
    readonly query: { readonly namespace?: string; readonly issuer?: string }
    readonly body: undefined
    readonly result: { readonly user: string; readonly issuer?: string; readonly namespace?: string; readonly items: number }
  }
  'GET /v1/now': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly calls: { readonly total: number; readonly long: number }; readonly sessions: number; readonly agents: readonly ({ readonly id: string; readonly calls: number })[]; readonly problems: readonly (string)[] | null; readonly health: { readonly ledger: boolean; readonly state: string | null; readonly sinks: readonly ({ readonly name: string; readonly lag: number; readonly isFailing: boolean })[] } | null; readonly unreachable: readonly ({ readonly id: string; readonly reason: string })[] }
  }
  'GET /v1/policies': {
    readonly params: {  }
    readonly query: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly namespace: string; readonly agents: readonly (string)[]; readonly mode: "enforce" | "dryRun"; readonly defaultAction: string; readonly cedar: string | null; readonly cedarFault: string | null; readonly rules: readonly ({ readonly name: string; readonly action: "allow" | "deny" | "require_approval"; readonly match?: { readonly [name: string]: readonly (string)[] }; readonly when?: string; readonly reason?: string; readonly quorum?: { readonly [name: string]: unknown }; readonly rateLimit?: { readonly [name: string]: unknown }; readonly hits: number; readonly since: string })[]; readonly defaultHits: number; readonly revision: string })[]; readonly nextCursor: string | null }
  }
  'GET /v1/servers': {
    readonly params: {  }
    readonly query: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly kind: "server" | "implicit" | "static" | "builtin"; readonly namespace: string | null; readonly sharedWith: readonly (string)[]; readonly url: string | null; readonly stdio: boolean; readonly trust: string; readonly dataClass: string; readonly jurisdiction: string | null; readonly protocolVersions: readonly (string)[] | null; readonly auth: string; readonly timeoutSeconds: number | null; readonly dlpProfile: string | null; readonly pins: string | null; readonly unreachable: string | null })[]; readonly nextCursor: string | null }
  }
  'GET /v1/models': {
    readonly params: {  }
    readonly query: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly namespaces: readonly (string)[]; readonly agents: readonly (string)[]; readonly aliases: readonly (string)[]; readonly balancing: string; readonly dataClass: string; readonly preferJurisdiction: string | null; readonly dlpProfile: string | null; readonly providerTools: readonly (string)[]; readonly contextTokens: number | null; readonly maxTokensPerRequest: number | null; readonly tokensPerMinute: number | null; readonly endpoints: readonly ({ readonly provider: string; readonly origin: string; readonly model: string | null; readonly isFallback: boolean; readonly jurisdiction: string | null; readonly region: string | null; readonly weight: number; readonly requestsPerMinute: number | null; readonly isReady: boolean; readonly circuit: "closed" | "open" | "trial"; readonly failures: number; readonly retryInMs: number | null; readonly latencies: readonly ({ readonly kind: string; readonly averageMs: number; readonly pending: number; readonly agoMs: number })[] })[] })[]; readonly nextCursor: string | null }
  }
  'GET /v1/agents': {
    readonly params: {  }
    readonly query: { readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly namespace: string; readonly agent: string; readonly policies: readonly (string)[]; readonly models: readonly (string)[]; readonly exposed: { readonly endpoint: string; readonly protocolVersion: string; readonly version: string; readonly description: string; readonly trust: string; readonly streaming: boolean; readonly jurisdiction: string | null; readonly skills: readonly (string)[] } | null })[]; readonly nextCursor: string | null }
  }
  'POST /v1/policies/simulate': {
    readonly params: {  }
    readonly query: { readonly tenant?: string }
    readonly body: { readonly policies: { readonly [name: string]: unknown }; readonly since?: string; readonly until?: string; readonly agent?: string; readonly show?: readonly ("same" | "changed" | "needs_arguments")[]; readonly limit?: number; readonly cursor?: string }
    readonly result: { readonly counts: { readonly same: number; readonly changed: number; readonly needs_arguments: number; readonly skipped: number }; readonly items: readonly ({ readonly seq: number; readonly at: string; readonly call: string; readonly namespace: string; readonly agent: string; readonly session: string; readonly op: string; readonly server: string; readonly tool: string | null; readonly verdict: "same" | "changed" | "needs_arguments"; readonly was: { readonly action: "allow" | "deny" | "require_approval"; readonly policy: string | null; readonly rule: string | null }; readonly would: { readonly action: "allow" | "deny" | "require_approval"; readonly policy: string | null; readonly rule: string | null; readonly reason: string } | null; readonly possible: readonly ("allow" | "deny" | "require_approval")[]; readonly captured: boolean })[]; readonly through: { readonly seq: number; readonly at: string } | null; readonly left: readonly ({ readonly first: number; readonly last: number })[]; readonly nextCursor: string | null }
  }
  'POST /v1/policies/try': {
    readonly params: {  }
    readonly query: {  }
    readonly body: { readonly namespace: string; readonly agent: string; readonly server: string; readonly tool: string; readonly arguments?: { readonly [name: string]: unknown }; readonly user?: string; readonly groups?: readonly (string)[]; readonly tier?: string; readonly taints?: readonly (string)[]; readonly policies?: { readonly [name: string]: unknown } }
    readonly result: { readonly action: "allow" | "deny" | "require_approval"; readonly code: string | null; readonly policy: string | null; readonly rule: string | null; readonly reason: string; readonly wouldBe: readonly (string)[] }
  }
  'GET /v1/problems': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly known: boolean; readonly items: readonly ({ readonly severity: "refused" | "warning"; readonly file: string | null; readonly line: number | null; readonly text: string })[] }
  }
  'POST /v1/admin/config:bundle': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly issuer: string; readonly revision: number; readonly applied: boolean }
  }
  'POST /v1/admin/state:adopt': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: undefined
  }
  'GET /v1/posture': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly risk: string; readonly fix: string })[]; readonly idleAccepts: readonly (string)[]; readonly nextCursor: null }
  }
  'GET /v1/license': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly edition: string; readonly state: "none" | "invalid" | "valid" | "grace" | "expired"; readonly reason?: string; readonly id?: string; readonly holder?: string; readonly from?: string; readonly until?: string; readonly graceDays?: number; readonly daysLeft?: number; readonly nodes: number | "unlimited" }
  }
  'GET /v1/accounts': {
    readonly params: {  }
    readonly query: { readonly user?: string; readonly provider?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly user: string; readonly realm: string; readonly provider: string; readonly scopes: readonly (string)[]; readonly expiresAt: string | null; readonly connectedAt: string })[]; readonly nextCursor: string | null }
  }
  'DELETE /v1/accounts/{id}': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: undefined
    readonly result: undefined
  }
  'GET /v1/audit/head': {
    readonly params: {  }
    readonly query: { readonly tenant?: string }
    readonly body: undefined
    readonly result: { readonly seq: number; readonly hash: string; readonly checkpoint: { readonly [name: string]: unknown } | null; readonly damagedSegments: readonly ({ readonly first: number; readonly last: number; readonly problem: string })[] }
  }
  'GET /v1/audit/replicas': {
    readonly params: {  }
    readonly query: { readonly tenant?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly replica: string; readonly ledgerId: string; readonly isHere: boolean; readonly seq: number; readonly hash: string; readonly copiedAt: string | null; readonly problem: string | null })[]; readonly nextCursor: string | null }
  }
  'GET /v1/audit/records': {
    readonly params: {  }
    readonly query: { readonly tenant?: string; readonly replica?: string; readonly from?: string; readonly to?: string; readonly order?: "oldest" | "newest"; readonly namespace?: string; readonly agent?: string; readonly session?: string; readonly user?: string; readonly server?: string; readonly tool?: string; readonly call?: string; readonly kind?: string; readonly denied?: boolean; readonly calls?: boolean; readonly text?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly seq: number; readonly hash: string; readonly prev: string; readonly rec: { readonly kind: string; readonly at: string }; readonly v: 1 })[]; readonly nextCursor: string | null }
  }
  'GET /v1/audit/proof/{seq}': {
    readonly params: { readonly seq: string }
    readonly query: { readonly tenant?: string; readonly replica?: string }
    readonly body: undefined
    readonly result: { readonly seq: number; readonly line: string; readonly checkpoint: { readonly [name: string]: unknown }; readonly inclusion: readonly (string)[] }
  }
  'GET /v1/audit/checkpoints': {
    readonly params: {  }
    readonly query: { readonly tenant?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly seq: number; readonly rec: { readonly [name: string]: unknown } })[]; readonly nextCursor: string | null }
  }
  'GET /v1/audit/segments': {
    readonly params: {  }
    readonly query: { readonly tenant?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly first: number; readonly last: number; readonly bytes: number; readonly from: string; readonly to: string; readonly isSigned: boolean; readonly isHere: boolean; readonly isCompressed: boolean; readonly isArchived: boolean; readonly left: string | null; readonly state: "verified" | "damaged" | "unverified"; readonly problem: string | null })[]; readonly nextCursor: string | null }
  }
  'POST /v1/audit/segments': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly edge: string; readonly upTo: number; readonly receipt: string }
  }
  'GET /v1/audit/jwks': {
    readonly params: {  }
    readonly query: {  }
    readonly body: undefined
    readonly result: { readonly keys: readonly ({ readonly kty: string })[] }
  }
  'POST /v1/audit/anchors': {
    readonly params: {  }
    readonly query: { readonly tenant?: string }
    readonly body: undefined
    readonly result: { readonly seq: number; readonly checkpoint: number; readonly upTo: number; readonly index: number }
  }
  'GET /v1/audit/holds': {
    readonly params: {  }
    readonly query: { readonly tenant?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly at: string; readonly by: string; readonly reason: string; readonly target: string })[]; readonly nextCursor: string | null }
  }
  'POST /v1/audit/holds': {
    readonly params: {  }
    readonly query: { readonly tenant?: string }
    readonly body: { readonly target: string; readonly reason?: string }
    readonly result: { readonly id: string; readonly at: string; readonly by: string; readonly reason: string; readonly target: string }
  }
  'DELETE /v1/audit/holds/{id}': {
    readonly params: { readonly id: string }
    readonly query: { readonly tenant?: string }
    readonly body: undefined
    readonly result: undefined
  }
  'POST /v1/contexts/{id}/checkpoint': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: { readonly name: string }
    readonly result: { readonly name: string; readonly bytes: number; readonly sha256: string }
  }
  'POST /v1/contexts/{id}/restore': {
    readonly params: { readonly id: string }
    readonly query: {  }
    readonly body: { readonly name: string }
    readonly result: { readonly name: string; readonly bytes: number; readonly sha256: string }
  }
  'GET /v1/evidence': {
    readonly params: {  }
    readonly query: { readonly tenant?: string; readonly limit?: number; readonly cursor?: string }
    readonly body: undefined
    readonly result: { readonly items: readonly ({ readonly id: string; readonly at: string; readonly by: string; readonly about: { readonly [name: string]: string }; readonly from: number; readonly to: number; readonly records: number; readonly anchored: boolean })[]; readonly nextCursor: string | null }
  }
  'POST /v1/evidence': {
    readonly params: {  }
    readonly query: { readonly tenant?: string }
    readonly body: { readonly namespace?: string; readonly agent?: string; readonly session?: string; readonly call?: string; readonly kind?: string; readonly from?: string; readonly to?: string }
    readonly result: { readonly id: string; readonly at: string; readonly by: string; readonly about: { readonly [name: string]: string }; readonly from: number; readonly to: number; readonly records: number; readonly anchored: boolean; readonly sha256: string; readonly bytes: number }
  }
  'GET /v1/evidence/{id}': {
    readonly params: { readonly id: string }
    readonly query: { readonly tenant?: string }
    readonly body: undefined
    readonly result: { readonly id: string; readonly at: string; readonly by: string; readonly about: { readonly [name: string]: string }; readonly from: number; readonly to: number; readonly records: number; readonly anchored: boolean }
  }
  'GET /v1/evidence/{id}/object': {
    readonly params: { readonly id: string }
    readonly query: { readonly tenant?: string }
    readonly body: undefined
    readonly result: { readonly [name: string]: unknown }
  }
  'GET /debug/profile': {
    readonly params: {  }
    readonly query: { readonly seconds?: number }
    readonly body: undefined
    readonly result: { readonly [name: string]: unknown }
  }
  'GET /debug/heap': {
    readonly params: {  }
    readonly query: { readonly seconds?: number }
    readonly body: undefined
    readonly result: { readonly [name: string]: unknown }
  }
}
