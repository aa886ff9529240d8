import { Type } from 'typebox'
import { mapOf } from '../check.ts'
import {
  closed,
  conditions,
  count,
  dlpProfile,
  flag,
  jurisdiction,
  listMap,
  longCount,
  oneOf,
  quantity,
  secretKeyRef,
  text,
  texts,
} from './common.ts'

const { Optional } = Type

const labels = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 16, description })

/** Pins of one server: here, and per server name in a ToolPolicy. */
export const toolPinsSchema = Type.Object(
  {
    mode: Optional(oneOf(['off', 'learn', 'enforce'], 'What pins do.', { default: 'learn' })),
    onChange: Optional(oneOf(['hide', 'approve', 'alert'], 'In enforce mode.', { default: 'hide' })),
    allowUnpinned: Optional(flag('Lets unpinned tools through in enforce mode.')),
    pins: Optional(
      mapOf(text('Digest of the definition.', { maxLength: 128 }), {
        maxProperties: 512,
        description: 'Digests by tool.',
      }),
    ),
  },
  { ...closed, description: 'Detection of changed tool definitions.' },
)

const toolLabelsSchema = mapOf(
  Type.Object(
    {
      taints: Optional(labels('Added to the session after a call.')),
      clearTaints: Optional(labels('Removed after a successful call; `*`: all.')),
      sinks: Optional(labels('Marks the tool as able to carry data out.')),
    },
    closed,
  ),
  { maxProperties: 512, description: 'Taint tracking per tool.' },
)

const oauthSchema = Type.Object(
  {
    tokenURL: text('Token endpoint.', { pattern: '^https?://' }),
    clientIdRef: secretKeyRef('Client id.'),
    clientSecretRef: secretKeyRef('Client secret.'),
    audience: Optional(text('Audience.')),
    resource: Optional(text('RFC 8707 resource.')),
    scopes: Optional(texts('Scopes.')),
  },
  { ...closed, description: 'OAuth client credentials.' },
)

/** `rule` states the required fields of one auth type, as evaluated by Kubernetes. */
const needs = (type: string, field: string) => ({
  rule: `self.type != '${type}' || has(self.${field})`,
  message: `type ${type} requires ${field}`,
  fieldPath: `.${field}`,
  reason: 'FieldValueRequired',
})

const authSchema = Type.Object(
  {
    type: oneOf(
      ['none', 'bearerSecret', 'headerSecret', 'oauthClientCredentials', 'tokenExchange', 'mtls'],
      'Upstream credential injection.',
      { default: 'none' },
    ),
    secretRef: Optional(secretKeyRef('Secret with the token.')),
    headerName: Optional(text('Header.', { maxLength: 64, pattern: '^[A-Za-z0-9-]{1,64}$' })),
    oauth: Optional(oauthSchema),
    tokenExchange: Optional(
      Type.Object(
        { audience: text('Allow-listed in the broker.', { minLength: 1 }) },
        { ...closed, description: 'Token of the broker for one audience.' },
      ),
    ),
    mtls: Optional(
      Type.Object(
        {
          certSecretRef: Type.Object(
            { name: text('TLS Secret with tls.crt and tls.key.', { minLength: 1, maxLength: 253 }) },
            { ...closed, description: 'Secret with the certificate.' },
          ),
        },
        { ...closed, description: 'Client certificate.' },
      ),
    ),
    perUser: Optional(flag('Injects the delegating user’s own token from the vault.')),
    provider: Optional(
      text('Provider that the user has connected.', { maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$' }),
    ),
  },
  {
    ...closed,
    description: 'Credential that the gateway presents to the server.',
    'x-kubernetes-validations': [
      needs('bearerSecret', 'secretRef'),
      needs('headerSecret', 'secretRef'),
      needs('headerSecret', 'headerName'),
      needs('oauthClientCredentials', 'oauth'),
      needs('tokenExchange', 'tokenExchange'),
      needs('mtls', 'mtls'),
      {
        rule: '!has(self.perUser) || !self.perUser || has(self.provider)',
        message: 'perUser requires provider',
        fieldPath: '.provider',
        reason: 'FieldValueRequired',
      },
      {
        rule: "!has(self.perUser) || !self.perUser || self.type in ['none', 'mtls']",
        message: 'perUser is only valid with type none or mtls',
        fieldPath: '.type',
      },
      {
        rule: '!has(self.provider) || (has(self.perUser) && self.perUser)',
        message: 'provider is only valid with perUser',
        fieldPath: '.provider',
      },
    ],
  },
)

const paths = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), { maxItems: 64, description })

const amounts = (description: string) => Optional(mapOf(quantity(description), { maxProperties: 64, description }))

const stdioSchema = Type.Object(
  {
    image: Optional(
      text('Container image with the program. Required on a cluster, not used by `plat up`.', {
        minLength: 1,
        maxLength: 512,
      }),
    ),
    imagePullSecrets: Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
        maxItems: 16,
        description: 'Secrets that the image is pulled with. On a cluster only.',
      }),
    ),
    resources: Optional(
      Type.Object(
        { limits: amounts('Limits by resource.'), requests: amounts('Requests by resource.') },
        {
          ...closed,
          description:
            'Compute resources of the container of all its processes. On a cluster only; default: requests of 50m CPU and 128Mi memory, a limit of 512Mi memory.',
        },
      ),
    ),
    command: text('Program: a path, or a name on the PATH.', { minLength: 1 }),
    args: Optional(Type.Array(Type.String({ maxLength: 4096 }), { maxItems: 256, description: 'Its arguments.' })),
    env: Optional(
      listMap(
        Type.Object(
          {
            name: text('Name of the variable.', { minLength: 1, maxLength: 256, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
            value: Optional(text('Its value.', { maxLength: 32_768 })),
            valueFrom: Optional(
              Type.Object(
                { secretKeyRef: secretKeyRef('Secret with the value.') },
                { ...closed, description: 'Where the value comes from.' },
              ),
            ),
          },
          {
            ...closed,
            'x-kubernetes-validations': [
              { rule: 'has(self.value) != has(self.valueFrom)', message: 'exactly one of value and valueFrom' },
            ],
          },
        ),
        ['name'],
        { maxItems: 128, description: 'Variables beside PATH, HOME and LANG.' },
      ),
    ),
    cwd: Optional(
      text(
        'Working directory; relative to the directory of `plat up`, which is the default. On a cluster an absolute path; default: that of the image.',
        { minLength: 1 },
      ),
    ),
    perSession: Optional(
      Type.Boolean({ default: true, description: 'A process for each session; otherwise all sessions share one.' }),
    ),
    idleSeconds: Optional(
      count('An unused process is stopped after this time.', { minimum: 1, maximum: 86_400, default: 600 }),
    ),
    isolation: Optional(
      Type.Object(
        {
          mode: Optional(
            oneOf(['auto', 'on', 'off'], 'Whether bubblewrap hides `.plat`; auto: where it works.', {
              default: 'auto',
            }),
          ),
          network: Optional(
            Type.Boolean({ default: true, description: 'Access to the network. On a cluster by a NetworkPolicy.' }),
          ),
          writable: Optional(
            paths(
              'The only paths that it can write; everything else is read-only. On a cluster each is an absolute path of an empty volume.',
            ),
          ),
          hidden: Optional(paths('Paths that it cannot see. Not on a cluster.')),
        },
        {
          ...closed,
          description: 'Rules that bubblewrap enforces; with any but `mode` it is required. On a cluster the pod does.',
        },
      ),
    ),
  },
  {
    ...closed,
    description:
      'A server that speaks on stdin and stdout: `plat up` runs it as a process, the operator of a cluster as a Deployment.',
  },
)

const operationRuleSchema = Type.Object(
  {
    operationId: Optional(text('`operationId`; `*` matches any run of characters.', { minLength: 1, maxLength: 256 })),
    tag: Optional(text('A tag of the operation.', { minLength: 1, maxLength: 256 })),
    path: Optional(
      text('Path as in the document; `*` matches any run of characters.', { maxLength: 1024, pattern: '^[/*]' }),
    ),
    methods: Optional(
      Type.Array(oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], 'A method.'), {
        minItems: 1,
        maxItems: 5,
        description: 'Methods. Without them, and without an `operationId` in full, only GET.',
      }),
    ),
  },
  {
    ...closed,
    'x-kubernetes-validations': [
      {
        rule: 'has(self.operationId) || has(self.tag) || has(self.path)',
        message: 'operationId, tag or path is required',
        reason: 'FieldValueRequired',
      },
    ],
  },
)

const openapiSchema = Type.Object(
  {
    file: Optional(text('File below the directory of `plat up`. Not on a cluster.', { minLength: 1 })),
    inline: Optional(text('The document, JSON or YAML.', { minLength: 1, maxLength: 262_144 })),
    configMapRef: Optional(
      Type.Object(
        {
          name: text('ConfigMap.', { minLength: 1, maxLength: 253 }),
          key: text('Key in it.', { minLength: 1, maxLength: 253 }),
        },
        { ...closed, description: 'The document in a ConfigMap.' },
      ),
    ),
    documentURL: Optional(
      text('URL of the document, which is read again every 10 minutes.', { pattern: '^https?://[^/@\\s]+' }),
    ),
    allow: Optional(
      Type.Array(operationRuleSchema, {
        minItems: 1,
        maxItems: 128,
        description: 'Operations that become tools: those that match a rule in all its fields. Default: every GET.',
      }),
    ),
  },
  {
    ...closed,
    description:
      'Makes the HTTP API at `url` an MCP server: a tool for each operation of an OpenAPI document (3.0, 3.1).',
    'x-kubernetes-validations': [
      {
        rule: '(has(self.file) ? 1 : 0) + (has(self.inline) ? 1 : 0) + (has(self.configMapRef) ? 1 : 0) + (has(self.documentURL) ? 1 : 0) == 1',
        message: 'exactly one of file, inline, configMapRef and documentURL is required',
        reason: 'FieldValueRequired',
      },
    ],
  },
)

/** `MCPServer.spec` (docs/spec/crds.md). */
export const mcpServerSpecSchema = Type.Object(
  {
    url: Optional(
      text('Streamable HTTP endpoint, or base of the API of `openapi`; only the gateway talks to it.', {
        pattern: '^https?://[^/@\\s]+',
      }),
    ),
    stdio: Optional(stdioSchema),
    openapi: Optional(openapiSchema),
    transport: Optional(oneOf(['streamable-http'], 'The only transport.', { default: 'streamable-http' })),
    protocolVersions: Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 32 }), {
        maxItems: 32,
        description: 'Revisions that it speaks.',
      }),
    ),
    trust: Optional(oneOf(['trusted', 'untrusted'], 'Classifies output.', { default: 'untrusted' })),
    dataClass: Optional(
      oneOf(['public', 'internal', 'confidential', 'restricted'], 'Highest class of data.', { default: 'internal' }),
    ),
    jurisdiction: Optional(jurisdiction()),
    timeoutSeconds: Optional(count('Wait for response headers.', { minimum: 1, maximum: 3600 })),
    shared: Optional(flag('Usable from `allowedNamespaces`.')),
    allowedNamespaces: Optional(texts('Namespaces that may use a shared server.')),
    dlpProfile: Optional(dlpProfile()),
    caBundleRef: Optional(
      Type.Object(
        {
          name: text('ConfigMap.', { minLength: 1, maxLength: 253 }),
          key: text('Key in it.', { minLength: 1, maxLength: 253 }),
        },
        { ...closed, description: 'PEM bundle trusted beside the system roots.' },
      ),
    ),
    toolLabels: Optional(toolLabelsSchema),
    toolPins: Optional(toolPinsSchema),
    auth: Optional(authSchema),
  },
  {
    ...closed,
    'x-kubernetes-validations': [
      {
        rule: 'has(self.url) != has(self.stdio)',
        message: 'exactly one of url and stdio is required',
        fieldPath: '.url',
        reason: 'FieldValueRequired',
      },
      {
        rule: '!has(self.openapi) || has(self.url)',
        message: 'openapi requires url',
        fieldPath: '.url',
        reason: 'FieldValueRequired',
      },
    ],
  },
)

/** `MCPServer.status` (docs/spec/crds.md). */
export const mcpServerStatusSchema = Type.Object(
  {
    conditions: Optional(conditions()),
    driftedTools: Optional(texts('Tools that differ from every pin; sorted.', { maxItems: 64 })),
    gatewayKey: Optional(text('`<namespace>/<name>` once published.')),
    lastSeen: Optional(Type.String({ format: 'date-time', maxLength: 64, description: 'Last report of pins.' })),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
    observedTools: Optional(count('Tools that the gateway has seen.')),
  },
  closed,
)
