import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { ephemeralSigner } from '@plat/keys'
import { silentLog } from '@plat/process'
import { listening, tempFolder } from '@plat/testkit/local'
import { signJws } from '@plat/tokens'
import { ClusterApi } from '../../kubernetes/cluster-api.ts'
import type { Cluster } from '../cluster.ts'

const OF_THE_BROKER = 'of-the-broker'
export const SANDBOX = '/apis/agents.x-k8s.io/v1beta1/namespaces/team/sandboxes/warm-1'
export const CLAIM = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team/sandboxclaims/claim-1'
export const SESSION = '/apis/plat.dev/v1alpha1/namespaces/team/agentsessions/s1'
export const AGENT = '/apis/plat.dev/v1alpha1/namespaces/team/agents/assistant'
export const TIER = '/apis/plat.dev/v1alpha1/trusttiers/tier-1'
export const SECRET = '/api/v1/namespaces/team/secrets/store'
export const POD = '/api/v1/namespaces/team/pods/warm-1'

/** An object as the API server keeps it. Tests change it in place and call `changed`. */
export interface Stored {
  metadata: Record<string, unknown>
  spec?: Record<string, unknown>
  status?: Record<string, unknown>
  data?: Record<string, unknown>
}

/** A small API server over plain HTTP, for responses that a real one gives only when it fails. */
export class FakeApiServer {
  readonly objects = new Map<string, Stored>()
  /** `<method> <path>` of every request, in order. */
  readonly seen: string[] = []
  /** Status of the answers to requests that match, in place of the right ones. */
  readonly faults: { readonly request: RegExp; readonly status: number }[] = []
  /** Requests that match are answered after this promise. */
  readonly held: { readonly request: RegExp; readonly until: Promise<void> }[] = []
  /** User of the one token that it authenticates; null: unauthenticated. */
  user: { username: string; extra: Record<string, string[]> } | null = {
    username: 'system:serviceaccount:team:runner',
    extra: {
      'authentication.kubernetes.io/pod-name': ['warm-1'],
      'authentication.kubernetes.io/pod-uid': ['uid-pod'],
    },
  }
  audiences = ['plat-bootstrap']
  url = ''
  readonly #watches = new Map<string, Set<ServerResponse>>()
  #version = 1

  constructor(t: TestContext) {
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const requested = `${request.method} ${request.url}`
      this.seen.push(requested)
      for (const hold of this.held) if (hold.request.test(requested)) await hold.until
      const fault = this.faults.find((each) => each.request.test(requested))
      if (request.headers.authorization !== `Bearer ${OF_THE_BROKER}`) return answer(response, 401, {})
      if (fault !== undefined) return answer(response, fault.status, { kind: 'Status' })
      this.#answer(requested, Buffer.concat(chunks).toString(), response)
    })
    this.ready = listening(server).then((port) => {
      this.url = `http://127.0.0.1:${port}`
    })
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
  }

  readonly ready: Promise<void>

  /** Updates the object at `where` with `change`, and notifies watchers. */
  change(where: string, change: (object: Stored) => void): void {
    const object = this.at(where)
    change(object)
    object.metadata.resourceVersion = String(++this.#version)
    for (const response of this.#watches.get(where) ?? []) {
      response.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`)
    }
  }

  at(where: string): Stored {
    const object = this.objects.get(where)
    assert.ok(object !== undefined, where)
    return object
  }

  put(where: string, uid: string, object: Partial<Stored> = {}): void {
    const metadata = { name: path.basename(where), uid, resourceVersion: String(++this.#version), ...object.metadata }
    this.objects.set(where, { ...object, metadata })
  }

  #answer(requested: string, body: string, response: ServerResponse): void {
    const [method = '', target = ''] = requested.split(' ')
    const url = new URL(target, 'http://api')
    const where = url.pathname.replace(/\/status$/, '')
    const object = this.objects.get(where)
    if (url.pathname.endsWith('/tokenreviews')) answer(response, 201, this.#review())
    else if (url.searchParams.has('watch')) this.#watch(url, response)
    else if (object === undefined) answer(response, 404, { kind: 'Status' })
    else if (method === 'PATCH') this.#patch(where, JSON.parse(body), response)
    else answer(response, 200, object)
  }

  /** A merge patch of the status, on the version that it names. */
  #patch(where: string, { metadata, status }: Stored, response: ServerResponse): void {
    const object = this.at(where)
    const current = metadata.uid === object.metadata.uid && metadata.resourceVersion === object.metadata.resourceVersion
    if (current) this.change(where, addStatus({ ...status }))
    answer(response, current ? 200 : 409, object)
  }

  #review(): object {
    if (this.user === null) return { status: { user: {}, error: 'invalid bearer token' } }
    return { status: { authenticated: true, audiences: this.audiences, user: this.user } }
  }

  #watch(url: URL, response: ServerResponse): void {
    const name = url.searchParams.get('fieldSelector')?.replace('metadata.name=', '') ?? ''
    const where = `${url.pathname}/${name}`
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    // A change since the watcher's version is sent at once.
    if (this.at(where).metadata.resourceVersion !== url.searchParams.get('resourceVersion')) {
      response.write(`${JSON.stringify({ type: 'MODIFIED' })}\n`)
    }
    const watches = this.#watches.get(where) ?? new Set()
    this.#watches.set(where, watches.add(response))
    response.on('close', () => watches.delete(response))
  }

  /** How many watches are open. */
  watching(): number {
    return [...this.#watches.values()].reduce((sum, { size }) => sum + size, 0)
  }
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** The controller reference of an owned object. */
export function ownedBy(apiVersion: string, kind: string, name: string, uid: string): Record<string, unknown> {
  return { ownerReferences: [{ apiVersion, kind, name, uid, controller: true }] }
}

/** An API server on which the pod `warm-1` serves the session `s1`: adopted, prepared, not yet bound. */
export async function adoptedCluster(t: TestContext): Promise<FakeApiServer> {
  const server = new FakeApiServer(t)
  await server.ready
  server.put(POD, 'uid-pod', {
    metadata: ownedBy('agents.x-k8s.io/v1beta1', 'Sandbox', 'warm-1', 'uid-sandbox'),
    status: { phase: 'Running' },
  })
  server.put(SANDBOX, 'uid-sandbox', {
    metadata: ownedBy('extensions.agents.x-k8s.io/v1beta1', 'SandboxClaim', 'claim-1', 'uid-claim'),
  })
  server.put(CLAIM, 'uid-claim', {
    metadata: ownedBy('plat.dev/v1alpha1', 'AgentSession', 's1', 'uid-session'),
    status: { sandbox: { name: 'warm-1' } },
  })
  server.put(SESSION, 'uid-session', {
    spec: {
      agentRef: 'assistant',
      user: 'ada@example.com',
      principalVerified: 'idToken',
      groups: ['staff'],
      scopes: ['tools:github'],
    },
    status: { phase: 'Running', sandboxRef: { name: 'warm-1', uid: 'uid-sandbox' } },
  })
  server.put(AGENT, 'uid-agent', {
    spec: {
      tier: 'tier-1',
      env: [
        { name: 'REGION', value: 'eu' },
        { name: 'BUCKET', value: 'data-$(REGION)-$$(REGION)-$(UNKNOWN)' },
        { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'store', key: 'password' } } },
        { name: 'PLAT_SESSION', value: 'another' },
      ],
    },
  })
  server.put(SECRET, 'uid-secret', { data: { password: Buffer.from('opensesame').toString('base64') } })
  server.put(TIER, 'uid-tier', { spec: { attested: false } })
  return server
}

/** The broker's end of it, on the machine's clock. */
export async function clusterOf(t: TestContext, server: FakeApiServer): Promise<Cluster> {
  const tokenFile = path.join(tempFolder(), 'token')
  await writeFile(tokenFile, `${OF_THE_BROKER}\n`)
  const dialer = createDialer({ clock: systemClock, log: silentLog })
  t.after(() => dialer.close())
  const parts = { dialer, clock: systemClock, log: silentLog }
  return { api: new ClusterApi({ api: server.url, caFile: '', tokenFile }, parts), isolation: new Map() }
}

/** A token in the form of a projected one: the API server judges it, not the broker. */
export function projectedToken(): string {
  return signJws(ephemeralSigner(), {}, { exp: Math.floor(systemClock.now() / 1000) + 600 })
}

/** A change that a test makes to an object. */
export type Change = (object: Stored) => void

export function setMetadata(metadata: Record<string, unknown>): Change {
  return (object) => {
    Object.assign(object.metadata, metadata)
  }
}

export function setSpec(spec: Record<string, unknown>): Change {
  return (object) => {
    object.spec = spec
  }
}

export function addSpec(spec: Record<string, unknown>): Change {
  return (object) => {
    object.spec = { ...object.spec, ...spec }
  }
}

export function setStatus(status: Record<string, unknown>): Change {
  return (object) => {
    object.status = status
  }
}

export function addStatus(status: Record<string, unknown>): Change {
  return (object) => {
    object.status = { ...object.status, ...status }
  }
}

export const phase = (name: string) => addStatus({ phase: name })
export const deleting = setMetadata({ deletionTimestamp: '2026-01-01T00:00:00Z' })
/** Owned by its pool: adopted by no claim yet. */
export const pooled = setMetadata(ownedBy('extensions.agents.x-k8s.io/v1beta1', 'SandboxWarmPool', 'pool', 'uid-pool'))
