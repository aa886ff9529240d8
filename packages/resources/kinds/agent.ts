import { Type } from 'typebox'
import { mapOf } from '../check.ts'
import { modelSchema } from './agent-model.ts'
import {
  closed,
  conditions,
  count,
  duration,
  flag,
  label,
  listMap,
  longCount,
  oneOf,
  quantity,
  text,
  texts,
} from './common.ts'
import { MODEL_USES } from './model-uses.ts'

const { Optional } = Type

const domains = (description: string) => texts(description, { maxItems: 256 })

const envSourceSchema = Type.Object(
  {
    configMapKeyRef: Optional(
      Type.Object(
        {
          key: text('Key in the ConfigMap.'),
          name: Optional(text('Its name.')),
          optional: Optional(flag('May be absent.')),
        },
        { ...closed, description: 'A key of a ConfigMap.' },
      ),
    ),
    secretKeyRef: Optional(
      Type.Object(
        {
          key: text('Key in the Secret.'),
          name: Optional(text('Its name.')),
          optional: Optional(flag('May be absent.')),
        },
        { ...closed, description: 'A key of a Secret.' },
      ),
    ),
    fieldRef: Optional(
      Type.Object(
        {
          fieldPath: text('Path of a field of the pod.'),
          apiVersion: Optional(text('Version of the path.', { default: 'v1' })),
        },
        { ...closed, description: 'A field of the pod.' },
      ),
    ),
    resourceFieldRef: Optional(
      Type.Object(
        {
          resource: text('Limit or request of cpu, memory, ephemeral-storage.'),
          containerName: Optional(text('Container.')),
          divisor: Optional(quantity('Unit of the value; default 1.')),
        },
        { ...closed, description: 'A limit or request of a container.' },
      ),
    ),
    fileKeyRef: Optional(
      Type.Object(
        {
          volumeName: text('Volume with the file.'),
          path: text('Relative path, without `..`.', { minLength: 1 }),
          key: text('Key in the file.', { maxLength: 128 }),
          optional: Optional(Type.Boolean({ default: false, description: 'May be absent.' })),
        },
        {
          ...closed,
          description: 'A key of a file in a volume.',
          'x-kubernetes-validations': [
            {
              rule: "!self.path.startsWith('/') && !self.path.matches('(^|/)[.][.](/|$)')",
              message: 'must be a relative path without `..`',
              fieldPath: '.path',
            },
          ],
        },
      ),
    ),
  },
  { ...closed, minProperties: 1, maxProperties: 1, description: 'Exactly one source.' },
)

const envSchema = Type.Object(
  {
    name: text('Printable ASCII except `=`.', { minLength: 1, pattern: '^[ -<>-~]+$' }),
    value: Optional(text('`$(NAME)` expands earlier variables, `$$` escapes.', { maxLength: 32_768 })),
    valueFrom: Optional(envSourceSchema),
  },
  {
    ...closed,
    'x-kubernetes-validations': [
      {
        rule: "!has(self.valueFrom) || !has(self.value) || self.value == ''",
        message: 'may not be specified when `value` is not empty',
        fieldPath: '.valueFrom',
      },
    ],
  },
)

const resourcesSchema = Type.Object(
  {
    claims: Optional(
      listMap(Type.Object({ name: text('Claim.'), request: Optional(text('Request in it.')) }, closed), ['name'], {
        description: 'Resource claims.',
      }),
    ),
    limits: Optional(mapOf(quantity('Limit.'), { maxProperties: 64, description: 'Limits by resource.' })),
    requests: Optional(mapOf(quantity('Request.'), { maxProperties: 64, description: 'Requests by resource.' })),
  },
  { ...closed, description: 'Compute requirements.' },
)

const toolSchema = Type.Object(
  {
    name: label('Name under which the agent reaches the server: `/mcp/<name>`, scope `tools:<name>`.'),
    serverRef: Optional(
      Type.Object(
        { name: label('MCPServer.'), namespace: Optional(label('Its namespace; it must share the server.')) },
        { ...closed, description: 'Binds the name to an MCPServer.' },
      ),
    ),
    upstreamURL: Optional(
      text('Deprecated: the real URL; used only where no MCPServer and no static upstream matches.', {
        pattern: '^https?://[^/@\\s]+',
      }),
    ),
  },
  closed,
)

const budgetSchema = Type.Object(
  {
    currency: Optional(
      text('ISO 4217; must equal the gateway’s.', { maxLength: 3, pattern: '^[A-Z]{3}$', default: 'USD' }),
    ),
    perSessionUSD: Optional(quantity('Cap per session.')),
    perDayUSD: Optional(quantity('Cap of all sessions per day.')),
    perMonthUSD: Optional(quantity('Cap of all sessions per month.')),
  },
  { ...closed, description: 'Spend caps on tool and model calls.' },
)

const skillSchema = Type.Object(
  {
    id: text('What callers select and policies match as `skill:<id>`.', {
      maxLength: 128,
      pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$',
    }),
    name: text('Name for people.', { minLength: 1 }),
    description: Optional(text('What it does.', { maxLength: 8192 })),
    examples: Optional(texts('Example requests.')),
    tags: Optional(texts('Tags.')),
  },
  closed,
)

const a2aSchema = Type.Object(
  {
    expose: flag('Publishes the agent and its signed card.'),
    endpoint: Optional(text('A2A JSON-RPC URL; only the gateway calls it.', { pattern: '^https?://' })),
    description: Optional(text('For the card.', { maxLength: 8192 })),
    allowedCallers: Optional(texts('Agents by name or `<namespace>/<name>`, globs; empty: this namespace.')),
    skills: Optional(listMap(skillSchema, ['id'], { description: 'Skills of the agent.' })),
    streaming: Optional(flag('Supports SendStreamingMessage.')),
    protocolVersion: Optional(oneOf(['1.0', '0.3'], 'A2A version of the endpoint.', { default: '1.0' })),
    timeoutSeconds: Optional(count('Wait for response headers.', { maximum: 3600 })),
    trust: Optional(oneOf(['trusted', 'untrusted'], 'Trust of the answers for callers.', { default: 'trusted' })),
    version: Optional(text('Card version.', { maxLength: 64, default: '1.0.0' })),
  },
  {
    ...closed,
    description: 'Agent-to-agent exposure at `/a2a/<ns>/<agent>`.',
    'x-kubernetes-validations': [
      {
        rule: "!self.expose || (has(self.endpoint) && self.endpoint != '')",
        message: 'expose requires endpoint',
        fieldPath: '.endpoint',
        reason: 'FieldValueRequired',
      },
    ],
  },
)

const workspaceSchema = Type.Object(
  {
    size: quantity('Size of the volume.'),
    mountPath: Optional(text('Where it is mounted.', { pattern: '^/[^:]*$', default: '/workspace' })),
    storageClassName: Optional(text('Default class when unset.', { maxLength: 253 })),
    volumeSnapshotClassName: Optional(
      text('VolumeSnapshotClass by which forks begin with the workspace of their parent.', { maxLength: 253 }),
    ),
  },
  { ...closed, description: 'Persistent volume per session.' },
)

/** Fields of `Agent.spec` that only sandboxes need: required by the CustomResourceDefinition, optional in files. */
export const AGENT_REQUIRED_ON_CLUSTER = ['image', 'tier'] as const

/** Tier of an agent that names none. */
const TIER_WITHOUT_CLUSTER = 'tier-0'

/** Returns the tier of an agent's sessions. */
export function tierOfAgent({ tier }: { readonly tier?: string | undefined }): string {
  return tier ?? TIER_WITHOUT_CLUSTER
}

/** `Agent.spec` (docs/spec/crds.md). */
export const agentSpecSchema = Type.Object(
  {
    image: Optional(text('Container image. Required on a cluster.', { minLength: 1 })),
    tier: Optional(
      text('TrustTier that the agent runs in. Required on a cluster; default elsewhere: `tier-0`.', {
        minLength: 1,
        maxLength: 63,
      }),
    ),
    profile: Optional(oneOf(['default', 'browser', 'codeInterpreter'], 'Sandbox pod profile.')),
    command: Optional(texts('Container command.')),
    args: Optional(texts('Its arguments.')),
    env: Optional(Type.Array(envSchema, { maxItems: 512, description: 'Environment variables.' })),
    resources: Optional(resourcesSchema),
    policyRef: Optional(text('ToolPolicy of the same namespace that governs the agent.', { maxLength: 253 })),
    scopes: Optional(texts('Scopes that may be granted; default `tools:<name>` for each tool.')),
    idleTimeout: Optional(
      duration('A session without activity for so long is suspended, if its activity is reported.', { default: '15m' }),
    ),
    maxSessionTTL: Optional(duration('Lifetime cap of sessions.')),
    maxConcurrentSessions: Optional(count('Cap on admitted sessions; 0: unlimited.')),
    tools: Optional(listMap(toolSchema, ['name'], { description: 'MCP servers that the agent reaches.' })),
    web: Optional(
      Type.Object(
        { allowedDomains: Optional(domains('Allowed.')), deniedDomains: Optional(domains('Denied.')) },
        { ...closed, description: 'The built-in web tool.' },
      ),
    ),
    browser: Optional(
      Type.Object(
        {
          allowedDomains: Optional(domains('Egress allow-list.')),
          liveView: Optional(flag('Remote view for admins.')),
        },
        { ...closed, description: 'Browser profile.' },
      ),
    ),
    codeInterpreter: Optional(
      Type.Object(
        { workspaceSize: Optional(quantity('Size of the session workspace.')) },
        { ...closed, description: 'Code interpreter profile.' },
      ),
    ),
    workspace: Optional(workspaceSchema),
    budget: Optional(budgetSchema),
    refusals: Optional(
      oneOf(
        ['result', 'error'],
        'How refused tool calls are answered: as tool results, which models read, or as JSON-RPC errors. Default: `refusals` of the gateway.',
      ),
    ),
    approvals: Optional(
      Type.Object(
        {
          answerAfterSeconds: Optional(
            count(
              'Patience of the agent’s MCP client: a tool call that waits longer for an approval is answered, and repeated by the agent. Default: `approvalAnswerAfterSeconds` of the gateway.',
              { maximum: 86_400 },
            ),
          ),
        },
        { ...closed, description: 'Calls that wait for an approval.' },
      ),
    ),
    model: Optional(modelSchema),
    modelRoutes: Optional(
      Type.Array(Type.String({ maxLength: 63, pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' }), {
        maxItems: 64,
        description: 'Model routes of `models` in gateway.json that the agent may use, beside its own `model`.',
      }),
    ),
    modelUses: Optional(
      Type.Array(oneOf(MODEL_USES, 'A use.'), {
        maxItems: 8,
        description: 'What the agent may request of its models beside text; default none.',
      }),
    ),
    a2a: Optional(a2aSchema),
  },
  closed,
)

/** `Agent.status` (docs/spec/crds.md). */
export const agentStatusSchema = Type.Object(
  {
    activeSessions: Optional(count('Sessions that are not in a terminal phase.')),
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
  },
  closed,
)
