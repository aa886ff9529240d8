import { X509Certificate } from 'node:crypto'
import type { Manifest } from '@plat/resources'
import type { ServerEntry, UpstreamsFile } from '@plat/resources/rendered'
import { type StdioPlace, stdioCertificateOf, stdioUrlOf } from '../stdio/place.ts'
import { stdioPlaceProblems } from '../stdio/problems.ts'
import { agentProblems } from '../validate/agent.ts'
import {
  type Problem,
  problemLine,
  RESERVED_PREFIX,
  reservedName,
  shareProblems,
  urlProblem,
} from '../validate/problem.ts'
import { serverProblems } from '../validate/server.ts'
import { authEntry, bundleOf, credentialKeyOf } from './auth.ts'
import { type Declared, keyOf, sorted } from './declared.ts'
import { pinsOf, policyPins } from './pins.ts'

/**
 * MCPServers and the tools of Agents as the gateway's upstreamsFile. The name of a refused server is unknown everywhere: it
 * never resolves to another server of the same name.
 */
export function renderUpstreams(declared: Declared): { file: UpstreamsFile; refused: string[] } {
  const rendering: Rendering = {
    declared: new Map(declared.servers.map((server) => [keyOf(server), server])),
    agents: new Set(declared.agents.map(keyOf)),
    hidden: new Set(),
    pins: policyPins(sorted(declared.policies), declared.servers),
    servers: {},
    bindings: {},
    refused: [],
  }
  const good: Manifest<'MCPServer'>[] = []
  for (const server of sorted(declared.servers)) {
    const problems = problemsOf(server, declared)
    rendering.refused.push(...problems.map((problem) => problemLine(server, problem)))
    if (problems.length === 0) good.push(server)
    else for (const namespace of [server.metadata.namespace, ...usersOf(server)]) hide(rendering, namespace, server)
  }
  for (const server of good) rendering.servers[keyOf(server)] = serverEntry(rendering, server, declared)
  const agentWeb: UpstreamsFile['agentWeb'] = {}
  const agentClients: NonNullable<UpstreamsFile['agentClients']> = {}
  for (const agent of sorted(declared.agents)) {
    if (agentProblems(agent, declared).length > 0) continue
    renderTools(rendering, agent)
    if (agent.spec.web !== undefined || agent.spec.browser !== undefined) agentWeb[keyOf(agent)] = webOf(agent.spec)
    const client = clientOf(agent.spec)
    if (Object.keys(client).length > 0) agentClients[keyOf(agent)] = client
  }
  const { servers, bindings, refused } = rendering
  const clients = Object.keys(agentClients).length > 0 ? { agentClients } : {}
  return { file: { version: 1, servers, bindings, agentWeb, ...clients }, refused }
}

/** Returns why a server is not in force; empty: it is. */
export function problemsOf(server: Manifest<'MCPServer'>, declared: Declared): Problem[] {
  return [
    ...shareProblems(server, declared),
    ...serverProblems(server),
    ...placeProblems(server, declared),
    ...bundleProblems(server, declared.bundles),
    ...apiProblems(server, declared),
  ]
}

function clientOf({ refusals, approvals: { answerAfterSeconds } = {} }: Manifest<'Agent'>['spec']) {
  return {
    ...(refusals !== undefined && { refusals }),
    ...(answerAfterSeconds !== undefined && { answerAfterSeconds }),
  }
}

function webOf({ web: { allowedDomains, deniedDomains } = {}, browser }: Manifest<'Agent'>['spec']) {
  return {
    ...(allowedDomains !== undefined && { allowedDomains: [...allowedDomains] }),
    ...(deniedDomains !== undefined && { deniedDomains: [...deniedDomains] }),
    ...(browser?.allowedDomains !== undefined && { browser: { allowedDomains: [...browser.allowedDomains] } }),
  }
}

interface Rendering {
  /** Every MCPServer, the refused ones too, by `<ns>/<name>`. */
  readonly declared: ReadonlyMap<string, Manifest<'MCPServer'>>
  /** Every Agent, by `<ns>/<name>`. */
  readonly agents: ReadonlySet<string>
  /** `<ns>/<name>` of refused servers, whose names must not resolve. */
  readonly hidden: Set<string>
  /** Pins of a server in ToolPolicies, by `<ns>/<name>`. */
  readonly pins: ReturnType<typeof policyPins>
  readonly servers: UpstreamsFile['servers']
  readonly bindings: UpstreamsFile['bindings']
  readonly refused: string[]
}

function hide(rendering: Rendering, namespace: string, { metadata }: Manifest<'MCPServer'>): void {
  rendering.hidden.add(`${namespace}/${metadata.name}`)
}

/** Other namespaces that may use a server. */
function usersOf({ metadata, spec }: Manifest<'MCPServer'>): string[] {
  if (spec.shared !== true) return []
  return [...new Set(spec.allowedNamespaces ?? [])].filter((namespace) => namespace !== metadata.namespace).toSorted()
}

function serverEntry(
  { hidden, pins: declared }: Rendering,
  server: Manifest<'MCPServer'>,
  { bundles, apis, home, stdio }: Pick<Declared, 'bundles' | 'apis' | 'home' | 'stdio'>,
): ServerEntry {
  const { metadata, spec } = server
  const { toolLabels } = spec
  const pins = pinsOf(server, declared.get(keyOf(server)) ?? [])
  const versions = spec.protocolVersions ?? []
  const place = addressOf(server, home === null ? null : (stdio ?? null))
  const caPEM = place.caPEM ?? bundles.texts.get(bundleOf(server) ?? '')
  const api = apis?.get(keyOf(server))
  return {
    ...place.address,
    ...(api !== undefined && 'tools' in api && { api: { tools: [...api.tools] } }),
    namespaces: usersOf(server).filter((namespace) => !hidden.has(`${namespace}/${metadata.name}`)),
    implicit: false,
    trust: spec.trust ?? 'untrusted',
    dataClass: spec.dataClass ?? 'internal',
    ...(spec.jurisdiction !== undefined && { jurisdiction: spec.jurisdiction }),
    ...(versions.length > 0 && { protocolVersions: [...versions] }),
    ...(spec.timeoutSeconds !== undefined && { timeoutSeconds: spec.timeoutSeconds }),
    ...(caPEM !== undefined && { caPEM }),
    auth: place.auth ?? authEntry(server),
    ...(spec.dlpProfile !== undefined && { dlpProfile: spec.dlpProfile }),
    ...(pins !== null && { pins }),
    ...(toolLabels !== undefined && Object.keys(toolLabels).length > 0 && { toolLabels }),
  }
}

interface ServerPlace {
  readonly address: Pick<ServerEntry, 'url' | 'stdio'>
  readonly caPEM?: string
  readonly auth?: ServerEntry['auth']
}

/**
 * Where a server is. One that `plat up` runs has a host that no resolver knows: it names the server in records, and leads nowhere. On a cluster it is
 * the Service of its Deployment, whose certificate is the only one for it.
 */
function addressOf(server: Manifest<'MCPServer'>, stdio: StdioPlace | null): ServerPlace {
  const { metadata, spec } = server
  const { namespace, name } = metadata
  if (spec.url !== undefined) return { address: { url: spec.url } }
  if (stdio === null)
    return { address: { url: `http://${name}.${namespace}.stdio.invalid/${namespace}/${name}`, stdio: true } }
  return {
    address: { url: stdioUrlOf(server), stdio: 'service' },
    caPEM: stdioCertificateOf(stdio, server).certificate,
    auth: { type: 'bearerSecret', credentialKey: credentialKeyOf(server) },
  }
}

/** Problems that only a cluster has. */
function placeProblems(server: Manifest<'MCPServer'>, { home, stdio = null }: Declared): Problem[] {
  if (home === null) return []
  if (server.spec.openapi?.file !== undefined)
    return [{ path: 'openapi.file', why: 'is read by plat up only: on a cluster use configMapRef' }]
  return stdioPlaceProblems(server, stdio)
}

/** Without its document nothing is known of the operations of an API. */
function apiProblems(server: Manifest<'MCPServer'>, { apis }: Declared): Problem[] {
  if (server.spec.openapi === undefined) return []
  const result = apis?.get(keyOf(server))
  if (result === undefined) return [{ path: 'openapi', why: 'its document is not read' }]
  if ('tools' in result) return []
  return [{ path: result.field === '' ? 'openapi' : `openapi.${result.field}`, why: result.why }]
}

/** Without its bundle a server could not be verified or reached. */
function bundleProblems(server: Manifest<'MCPServer'>, { texts, withheld }: Declared['bundles']): Problem[] {
  const from = bundleOf(server)
  if (from === null) return []
  const bundle = texts.get(from)
  if (bundle === undefined) {
    const why = withheld.get(from)
    return [{ path: 'caBundleRef', why: why === undefined ? `no ConfigMap ${from}` : `ConfigMap ${from} ${why}` }]
  }
  const certificates = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  const good = certificates.length > 0 && certificates.every(isCertificate)
  return good ? [] : [{ path: 'caBundleRef', why: `${from} holds no PEM certificates` }]
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}

function renderTools(rendering: Rendering, agent: Manifest<'Agent'>): void {
  const { namespace, name } = agent.metadata
  for (const [index, tool] of (agent.spec.tools ?? []).entries()) {
    const at = `tools[${index}]`
    const refuse = (problem: Problem) => rendering.refused.push(problemLine(agent, problem))
    if (tool.name.startsWith(RESERVED_PREFIX)) refuse(reservedName(`${at}.name`))
    else if (tool.serverRef !== undefined) {
      const key = `${tool.serverRef.namespace ?? namespace}/${tool.serverRef.name}`
      // Bound even when it leads nowhere: the gateway then answers unknown_server and looks no further.
      rendering.bindings[`${namespace}/${name}/${tool.name}`] = key
      const why = whyUnbound(rendering, namespace, key)
      if (why !== null) refuse({ path: `${at}.serverRef`, why })
    } else if (tool.upstreamURL !== undefined) {
      const path = `${at}.upstreamURL`
      const why =
        urlProblem(path, tool.upstreamURL)?.why ?? renderImplicit(rendering, agent, tool.name, tool.upstreamURL)
      if (why !== null) refuse({ path, why })
    }
  }
}

function whyUnbound({ declared }: Rendering, namespace: string, key: string): string | null {
  const server = declared.get(key)
  if (server === undefined) return `no MCPServer ${key}`
  const mayUse = server.metadata.namespace === namespace || usersOf(server).includes(namespace)
  return mayUse ? null : `MCPServer ${key} is not shared with namespace ${namespace}`
}

/** Prefixes of a name before each hyphen: the agents that an implicit server of this name may belong to. */
function prefixesOf(name: string): string[] {
  return [...name.matchAll(/-/g)].map(({ index }) => name.slice(0, index))
}

/** Publishes `<agent>-<name>`; null, or why that would let others in. */
function renderImplicit(
  rendering: Rendering,
  { metadata: { namespace, name } }: Manifest<'Agent'>,
  tool: string,
  url: string,
): string | null {
  if (rendering.hidden.has(`${namespace}/${tool}`)) return `MCPServer ${tool} takes precedence and is refused`
  const implicit = `${name}-${tool}`
  if (implicit.startsWith(RESERVED_PREFIX)) return reservedName('').why
  const key = `${namespace}/${implicit}`
  if (rendering.declared.has(key)) return `MCPServer ${key} has the name of this implicit server`
  const other = prefixesOf(implicit).find((prefix) => prefix !== name && rendering.agents.has(`${namespace}/${prefix}`))
  if (other !== undefined) return `implicit server ${key} would serve agent ${other} as well: write an MCPServer`
  rendering.servers[key] = {
    url,
    namespaces: [],
    implicit: true,
    trust: 'untrusted',
    dataClass: 'internal',
    auth: { type: 'none' },
  }
  return null
}
