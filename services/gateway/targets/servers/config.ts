import { defineBlock, isUnset, type Rule } from '@plat/config'
import Type from 'typebox'

/** Name of a static server (docs/spec/gateway.md, core rule 7). */
const SERVER_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'

const SOURCES = ['upstreams', 'upstreamsFile', 'models', 'modelsFile']

/** docs/spec/gateway.md, core rule 3. */
const someUpstream: Rule = (_block, file) =>
  SOURCES.every((key) => isUnset(file[key]))
    ? [{ path: '', message: `at least one of ${SOURCES.join(', ')} is required`, severity: 'error' }]
    : []

/** MCP servers (docs/spec/gateway.md). */
export const serversBlock = defineBlock({
  path: '',
  feature: 'servers',
  schema: Type.Object({
    upstreamsFile: Type.String({
      default: '',
      file: 'warning',
      description: 'Registry (`{servers, bindings, agentWeb, agentClients}`); takes precedence over `upstreams`.',
    }),
    upstreams: Type.Record(Type.String({ pattern: SERVER_NAME }), Type.String({ minLength: 1, format: 'http-url' }), {
      default: {},
      description: 'Deprecated static servers, name to URL.',
    }),
    upstreamCredentialsDir: Type.String({
      default: '',
      file: 'warning',
      description: 'Credential files `<credentialKey>.<suffix>`, re-read each reload.',
    }),
    refusals: Type.Enum(['result', 'error'], {
      default: 'result',
      description:
        'How a refused `tools/call` is answered: `result` (a tool result with `isError`, which models read) or `error` (a JSON-RPC error). An Agent and the header `x-plat-refusals` may say otherwise.',
    }),
    mcpSeparator: Type.String({
      default: '__',
      pattern: '^[_.-]{1,4}$',
      description: 'What separates server and name at `/mcp`, the address of all MCP servers: `notes__add`.',
    }),
    mcpListSeconds: Type.Integer({
      default: 4,
      minimum: 1,
      maximum: 60,
      description:
        'How long a list at `/mcp` waits for a server before it is left out; clients of several frameworks give up after 5.',
    }),
    tokenExchangeURL: Type.String({
      default: '',
      format: 'http-url',
      description: 'Broker `/v1/exchange` URL for servers with auth type `tokenExchange`.',
    }),
    tokenExchangeAudiences: Type.Record(
      Type.String({ pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$' }),
      Type.Array(Type.String({ minLength: 1 })),
      {
        default: {},
        description:
          'Audiences that MCPServers of a namespace may receive exchanged tokens for. A namespace without an entry receives only those for its agents, for any audience.',
      },
    ),
  }),
  rules: [someUpstream],
})
