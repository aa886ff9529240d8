/** The fields of Agent and MCPServer in the contract. @table */

/** A rule for one field, in the words of a CRD's schema. What is absent the contract leaves open. */
export interface FieldRule {
  readonly type?: 'string' | 'integer' | 'boolean' | 'array' | 'object' | 'quantity'
  readonly format?: string
  readonly required?: true
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly default?: unknown
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly maxItems?: number
}

/** Paths below `spec` or `status`; `[]` names the entries of a list, `{}` the values of a map. */
export type Fields = Readonly<Record<string, FieldRule>>

const LABEL = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'
const JURISDICTION = '^[A-Za-z]{2}(-[A-Za-z0-9]{1,8})*$'
const PROFILE = '^[a-z0-9][a-z0-9-]{0,62}$'

const string = { type: 'string' } as const
const boolean = { type: 'boolean' } as const
const quantity = { type: 'quantity' } as const
const object = { type: 'object' } as const
const strings = { type: 'array' } as const
const required = { required: true } as const
const count32 = { type: 'integer', format: 'int32', minimum: 0 } as const
const count64 = { type: 'integer', format: 'int64', minimum: 0 } as const
const filled = { ...string, minLength: 1 } as const
const named = { ...string, ...required, minLength: 1 } as const

/** Fields of an object, below the path of the object. */
const below = (path: string, fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).map(([name, rule]) => [`${path}.${name}`, rule]))

const secretKey: Fields = {
  name: { ...named, maxLength: 253 },
  key: { ...named, maxLength: 253, pattern: '^[-._a-zA-Z0-9]+$' },
}

const endpoint: Fields = {
  name: string,
  adapter: {
    ...string,
    enum: ['openai', 'azure-openai', 'bedrock', 'vertex', 'gemini', 'anthropic', 'oci-genai'],
  },
  adapterMode: {
    ...string,
    enum: ['v1', 'deployments', 'converse', 'openai', 'native', 'direct', 'vertex', 'bedrock'],
  },
  apiVersion: { ...string, pattern: '^[A-Za-z0-9._-]{1,40}$' },
  apiKeySecretRef: object,
  ...below('apiKeySecretRef', secretKey),
  jurisdiction: { ...string, pattern: JURISDICTION },
  region: { ...string, pattern: '^[a-z][a-z0-9-]{1,40}$' },
  project: { ...string, pattern: '^[a-z0-9][a-z0-9-]{2,62}$' },
  requestsPerMinute: count32,
  weight: { ...count32, maximum: 1000 },
}

const env: Fields = {
  name: { ...string, ...required },
  value: string,
  valueFrom: object,
  'valueFrom.configMapKeyRef': object,
  ...below('valueFrom.configMapKeyRef', { key: { ...string, ...required }, name: string, optional: boolean }),
  'valueFrom.secretKeyRef': object,
  ...below('valueFrom.secretKeyRef', { key: { ...string, ...required }, name: string, optional: boolean }),
  'valueFrom.fieldRef': object,
  ...below('valueFrom.fieldRef', { fieldPath: { ...string, ...required }, apiVersion: { ...string, default: 'v1' } }),
  'valueFrom.resourceFieldRef': object,
  ...below('valueFrom.resourceFieldRef', {
    resource: { ...string, ...required },
    containerName: string,
    divisor: quantity,
  }),
  'valueFrom.fileKeyRef': object,
  ...below('valueFrom.fileKeyRef', {
    volumeName: { ...string, ...required },
    path: { ...string, ...required },
    key: { ...string, ...required, maxLength: 128 },
    optional: { ...boolean, default: false },
  }),
}

const model: Fields = {
  provider: { ...string, maxLength: 128 },
  endpoint: { ...string, pattern: '^https?://[^/?#@]+' },
  ...endpoint,
  aliases: object,
  'aliases{}': string,
  dlpProfile: { ...string, pattern: PROFILE },
  contextTokens: count64,
  maxTokensPerRequest: count64,
  tokensPerMinute: count64,
  reasoning: boolean,
  providerTools: { ...strings, maxItems: 16 },
  'providerTools[]': string,
  balancing: { ...string, enum: ['order', 'weight', 'latency'] },
  retries: object,
  'retries.attempts': { ...count32, ...required, maximum: 3 },
  'retries.budgetPercent': { ...count32, minimum: 1, maximum: 100 },
  'retries.maxWaitSeconds': { ...count32, minimum: 1, maximum: 60 },
  cache: object,
  'cache.ttlSeconds': { ...count32, ...required, maximum: 86_400 },
  'cache.scope': { ...string, enum: ['session', 'user', 'agent'] },
  fallbacks: { ...strings, maxItems: 8 },
  'fallbacks[]': object,
  ...below('fallbacks[]', { endpoint: { ...named, pattern: '^https?://[^/?#@]+' }, ...endpoint }),
}

const a2a: Fields = {
  expose: { ...boolean, ...required },
  endpoint: { ...string, pattern: '^https?://' },
  description: string,
  allowedCallers: strings,
  'allowedCallers[]': string,
  skills: strings,
  'skills[]': object,
  ...below('skills[]', {
    id: { ...string, ...required, pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' },
    name: named,
    description: string,
    examples: strings,
    'examples[]': string,
    tags: strings,
    'tags[]': string,
  }),
  streaming: boolean,
  protocolVersion: { ...string, enum: ['1.0', '0.3'], default: '1.0' },
  timeoutSeconds: { ...count32, maximum: 3600 },
  trust: { ...string, enum: ['trusted', 'untrusted'], default: 'trusted' },
  version: { ...string, default: '1.0.0' },
}

export const agentFields: Fields = {
  image: named,
  tier: named,
  profile: { ...string, enum: ['default', 'browser', 'codeInterpreter'] },
  command: strings,
  'command[]': string,
  args: strings,
  'args[]': string,
  env: strings,
  'env[]': object,
  ...below('env[]', env),
  resources: object,
  'resources.claims': strings,
  'resources.claims[]': object,
  'resources.claims[].name': { ...string, ...required },
  'resources.claims[].request': string,
  'resources.limits': object,
  'resources.limits{}': quantity,
  'resources.requests': object,
  'resources.requests{}': quantity,
  policyRef: string,
  scopes: strings,
  'scopes[]': string,
  refusals: { ...string, enum: ['result', 'error'] },
  approvals: object,
  'approvals.answerAfterSeconds': { ...count32, maximum: 86_400 },
  idleTimeout: { ...string, default: '15m' },
  maxSessionTTL: string,
  maxConcurrentSessions: count32,
  tools: strings,
  'tools[]': object,
  'tools[].name': { ...string, ...required, maxLength: 63, pattern: LABEL },
  'tools[].serverRef': object,
  'tools[].serverRef.name': { ...string, ...required, maxLength: 63, pattern: LABEL },
  'tools[].serverRef.namespace': { ...string, maxLength: 63, pattern: LABEL },
  'tools[].upstreamURL': string,
  web: object,
  'web.allowedDomains': { ...strings, maxItems: 256 },
  'web.allowedDomains[]': string,
  'web.deniedDomains': { ...strings, maxItems: 256 },
  'web.deniedDomains[]': string,
  browser: object,
  'browser.allowedDomains': { ...strings, maxItems: 256 },
  'browser.allowedDomains[]': string,
  'browser.liveView': boolean,
  codeInterpreter: object,
  'codeInterpreter.workspaceSize': quantity,
  workspace: object,
  'workspace.size': { ...quantity, ...required },
  'workspace.mountPath': { ...string, pattern: '^/[^:]*$', default: '/workspace' },
  'workspace.storageClassName': string,
  'workspace.volumeSnapshotClassName': string,
  budget: object,
  'budget.currency': { ...string, pattern: '^[A-Z]{3}$', default: 'USD' },
  'budget.perSessionUSD': quantity,
  'budget.perDayUSD': quantity,
  'budget.perMonthUSD': quantity,
  model: object,
  ...below('model', model),
  modelRoutes: { ...strings, maxItems: 64 },
  'modelRoutes[]': { ...string, pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' },
  modelUses: { ...strings, maxItems: 8 },
  'modelUses[]': { ...string, enum: ['images', 'audio', 'files', 'batches'] },
  a2a: object,
  ...below('a2a', a2a),
}

const auth: Fields = {
  type: {
    ...string,
    ...required,
    enum: ['none', 'bearerSecret', 'headerSecret', 'oauthClientCredentials', 'tokenExchange', 'mtls'],
    default: 'none',
  },
  secretRef: object,
  ...below('secretRef', secretKey),
  headerName: { ...string, pattern: '^[A-Za-z0-9-]{1,64}$' },
  oauth: object,
  'oauth.tokenURL': { ...string, ...required, pattern: '^https?://' },
  'oauth.clientIdRef': { ...object, ...required },
  ...below('oauth.clientIdRef', secretKey),
  'oauth.clientSecretRef': { ...object, ...required },
  ...below('oauth.clientSecretRef', secretKey),
  'oauth.audience': string,
  'oauth.resource': string,
  'oauth.scopes': strings,
  'oauth.scopes[]': string,
  tokenExchange: object,
  'tokenExchange.audience': named,
  mtls: object,
  'mtls.certSecretRef': { ...object, ...required },
  'mtls.certSecretRef.name': { ...string, ...required },
  perUser: boolean,
  provider: { ...string, pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$' },
}

export const serverFields: Fields = {
  url: { ...string, pattern: '^https?://[^/@\\s]+' },
  stdio: object,
  ...below('stdio', {
    image: filled,
    imagePullSecrets: strings,
    'imagePullSecrets[]': filled,
    resources: object,
    'resources.limits': object,
    'resources.limits{}': quantity,
    'resources.requests': object,
    'resources.requests{}': quantity,
    command: named,
    args: strings,
    'args[]': string,
    env: strings,
    'env[]': object,
    'env[].name': { ...named, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
    'env[].value': string,
    'env[].valueFrom': object,
    'env[].valueFrom.secretKeyRef': { ...object, ...required },
    ...below('env[].valueFrom.secretKeyRef', secretKey),
    cwd: filled,
    perSession: { ...boolean, default: true },
    idleSeconds: { type: 'integer', format: 'int32', minimum: 1, maximum: 86_400, default: 600 },
    isolation: object,
    'isolation.mode': { ...string, enum: ['auto', 'on', 'off'], default: 'auto' },
    'isolation.network': { ...boolean, default: true },
    'isolation.writable': strings,
    'isolation.writable[]': filled,
    'isolation.hidden': strings,
    'isolation.hidden[]': filled,
  }),
  openapi: object,
  ...below('openapi', {
    file: filled,
    inline: filled,
    configMapRef: object,
    'configMapRef.name': named,
    'configMapRef.key': named,
    documentURL: { ...string, pattern: '^https?://[^/@\\s]+' },
    allow: strings,
    'allow[]': object,
    'allow[].operationId': filled,
    'allow[].tag': filled,
    'allow[].path': { ...string, pattern: '^[/*]' },
    'allow[].methods': strings,
    'allow[].methods[]': { ...string, enum: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] },
  }),
  transport: { ...string, enum: ['streamable-http'], default: 'streamable-http' },
  protocolVersions: strings,
  'protocolVersions[]': string,
  trust: { ...string, enum: ['trusted', 'untrusted'], default: 'untrusted' },
  dataClass: { ...string, enum: ['public', 'internal', 'confidential', 'restricted'], default: 'internal' },
  jurisdiction: { ...string, pattern: JURISDICTION },
  timeoutSeconds: { type: 'integer', format: 'int32', minimum: 1, maximum: 3600 },
  shared: boolean,
  allowedNamespaces: strings,
  'allowedNamespaces[]': string,
  dlpProfile: { ...string, pattern: PROFILE },
  caBundleRef: object,
  'caBundleRef.name': named,
  'caBundleRef.key': named,
  toolLabels: object,
  'toolLabels{}': object,
  ...below('toolLabels{}', {
    taints: { ...strings, maxItems: 16 },
    'taints[]': string,
    clearTaints: { ...strings, maxItems: 16 },
    'clearTaints[]': string,
    sinks: { ...strings, maxItems: 16 },
    'sinks[]': string,
  }),
  toolPins: object,
  'toolPins.mode': { ...string, enum: ['off', 'learn', 'enforce'], default: 'learn' },
  'toolPins.onChange': { ...string, enum: ['hide', 'approve', 'alert'], default: 'hide' },
  'toolPins.allowUnpinned': boolean,
  'toolPins.pins': object,
  'toolPins.pins{}': string,
  auth: object,
  ...below('auth', auth),
}

const conditions: Fields = {
  conditions: strings,
  'conditions[]': object,
  ...below('conditions[]', {
    type: { ...string, ...required, maxLength: 316 },
    status: { ...string, ...required, enum: ['True', 'False', 'Unknown'] },
    reason: { ...named, maxLength: 1024 },
    message: { ...string, ...required, maxLength: 32_768 },
    lastTransitionTime: { ...string, ...required, format: 'date-time' },
    observedGeneration: count64,
  }),
}

export const agentStatusFields: Fields = {
  activeSessions: { type: 'integer', format: 'int32' },
  ...conditions,
  observedGeneration: { type: 'integer', format: 'int64' },
}

export const serverStatusFields: Fields = {
  ...conditions,
  driftedTools: { ...strings, maxItems: 64 },
  'driftedTools[]': string,
  gatewayKey: string,
  lastSeen: { ...string, format: 'date-time' },
  observedGeneration: { type: 'integer', format: 'int64' },
  observedTools: { type: 'integer', format: 'int32' },
}

/** Fields that are narrower than the contract says, and why that changes nothing that it promises. */
export const narrower: Readonly<Record<string, string>> = {
  'env[].name': 'printable ASCII except `=` is a pattern here',
  'env[].valueFrom.fileKeyRef.path': 'an empty path names no file',
  idleTimeout: 'a duration has a form',
  maxSessionTTL: 'a duration has a form',
  'tools[].upstreamURL': 'a URL that cannot be called is refused at once',
  'protocolVersions[]': 'an empty revision is none',
  'toolLabels{}.taints[]': 'an empty label is none',
  'toolLabels{}.clearTaints[]': 'an empty label is none',
  'toolLabels{}.sinks[]': 'an empty label is none',
  'auth.mtls.certSecretRef.name': 'an empty name names no Secret',
  'conditions[].type': 'CamelCase with an optional domain is a pattern here',
  'conditions[].reason': 'CamelCase is a pattern here',
  activeSessions: 'a count is never negative',
  observedTools: 'a count is never negative',
  observedGeneration: 'a count is never negative',
}
