import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { TestIssuer } from '@plat/testkit/identity'
import { freePort, tempFolder } from '@plat/testkit/local'
import { denialOf } from '@plat/testkit/mcp/denial'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import type { Gateway } from '../../../gateway.ts'
import { started, TOKEN } from '../../../testing/started.ts'
import { keyFiles } from '../../audit/testing/keys.ts'

/** A gateway of the test. */
export interface Node {
  readonly gateway: Gateway
  readonly issuer: TestIssuer
  /** Returns the complete lines of its ledger. */
  lines(): string[]
  /** Returns the value of a metric with the given labels. */
  metric(name: string): Promise<number>
  /** Calls a tool of `notes`, which is unreachable. Returns the error code: `upstream_error` means that the call was allowed. */
  call(tool: string): Promise<string>
}

/** An edge and its collector, which may be down. */
export interface EdgeFixture {
  readonly edgeDir: string
  readonly hubDir: string
  /** Starts the edge with these settings over the defaults. */
  edge(offline?: object, own?: object): Promise<Node>
  /** Starts the collector, always on the same port. */
  hub(collector?: object, own?: object): Promise<Node>
  /** The edge's ledger as stored by the collector. */
  stored(): string[]
}

/** Policy: tools whose name begins with this prefix need an approval, all others are allowed. */
const POLICIES = policiesFile([
  testPolicy({
    rules: [
      { name: 'all', action: 'allow' },
      { name: 'ask', action: 'require_approval', match: { tools: ['ask*'] } },
    ],
  }),
])

/** Creates keys, folders and a port for the collector; starts nothing. */
export async function setUp(t: TestContext): Promise<EdgeFixture> {
  // Closed before the folders are removed: edges write until the end.
  const running: Gateway[] = []
  t.after(() => Promise.all(running.map((gateway) => gateway.drain())))
  const start = async (dir: string, own: object): Promise<Node> => {
    const { gateway, ...node } = await startNode(t, dir, own)
    running.push(gateway)
    return { gateway, ...node }
  }
  const [edgeDir, hubDir] = [tempFolder(), tempFolder()]
  const [edgeKey, hubKey] = [await keyFiles(), await keyFiles()]
  const port = await freePort()
  const policyFile = join(edgeDir, 'policies.json')
  const tokenFile = join(edgeDir, 'token')
  await Promise.all([writeFile(policyFile, POLICIES), writeFile(tokenFile, `${TOKEN}\n`)])
  const seconds = { intervalSeconds: 1, maxBackoffSeconds: 1, timeoutSeconds: 5 }
  return {
    edgeDir,
    hubDir,
    edge(offline = {}, own = {}) {
      const block = {
        enabled: true,
        edgeId: 'north',
        sealIntervalSeconds: 1,
        collectorKeyFiles: [hubKey.pub],
        forward: { url: `http://127.0.0.1:${port}`, tokenFile, ...seconds },
        disconnectedAfterSeconds: 2,
        ...offline,
      }
      const least = { policyFile, auditCheckpointKey: edgeKey.uri, approvalTimeoutSeconds: 1 }
      return start(edgeDir, { ...least, offline: block, ...own })
    },
    hub(collector = {}, own = {}) {
      const edges = [{ id: 'north', publicKeyFiles: [edgeKey.pub] }]
      const auditCollector = { enabled: true, id: 'hub', edges, ...collector }
      return start(hubDir, { listen: `127.0.0.1:${port}`, auditCheckpointKey: hubKey.uri, auditCollector, ...own })
    },
    stored: () => completeLines(join(hubDir, 'audit.jsonl.edges', 'north', 'ledger.jsonl')),
  }
}

async function startNode(t: TestContext, dir: string, own: object): Promise<Node> {
  const auditPath = join(dir, 'audit.jsonl')
  const { gateway, issuer } = await started(t, { auditPath, ...own }, true)
  return {
    gateway,
    issuer,
    lines: () => completeLines(auditPath),
    async metric(name) {
      const headers = { authorization: `Bearer ${TOKEN}` }
      const text = await (await fetch(`${gateway.url}/metrics`, { headers })).text()
      const value = text.split('\n').find((line) => line.startsWith(`${name} `))
      return value === undefined ? Number.NaN : Number(value.slice(name.length + 1))
    },
    call: (tool) => call(gateway.url, issuer.token({ scope: 'tools:notes' }), tool),
  }
}

async function call(url: string, token: string, name: string): Promise<string> {
  const response = await fetch(`${url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }),
  })
  return String(denialOf(JSON.parse(await response.text())).data.error)
}

/** Terminated lines; none without a file. */
function completeLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1)
  } catch {
    return []
  }
}
