import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { listening } from '@plat/testkit/local'
import { signJws } from '@plat/tokens'
import { kubernetesCheck } from './kubernetes.ts'
import { type Attempt, context, proofCheckSuite, proofOf, testParts } from './testing/suite.ts'

const dir = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
const tokenFile = path.join(dir, 'token')
writeFileSync(tokenFile, 'of-the-broker\n')
const UID = '6f2a6a0e-3f0e-4d3c-9d55-0a4c8d8f2b11'
const DIGEST = `sha256:${'ab'.repeat(32)}`

/** State of the API server; tests change it. */
interface Cluster {
  audiences: string[]
  username: string
  extra: Record<string, string[]>
  authenticated: boolean
  /** Members of a TokenReview status that override the correct ones. */
  review: object
  pod: Record<string, object> | null
  /** Status of every response, overriding the correct one. */
  status: number | null
}

const pod = () => ({
  metadata: { name: 'runner-1', namespace: 'default', uid: UID },
  spec: { runtimeClassName: 'gvisor' },
  status: { phase: 'Running', containerStatuses: [{ imageID: `registry.example/runner@${DIGEST}` }] },
})

/** Answers TokenReviews and reads of one pod as the API server does, to the broker's own token alone. */
async function apiServer(change: Partial<Cluster>) {
  const seen: string[] = []
  const cluster: Cluster = {
    audiences: ['plat-identity'],
    username: 'system:serviceaccount:default:runner',
    extra: {
      'authentication.kubernetes.io/pod-name': ['runner-1'],
      'authentication.kubernetes.io/pod-uid': [UID],
      'authentication.kubernetes.io/credential-id': ['JTI=1'],
    },
    authenticated: true,
    review: {},
    pod: pod(),
    status: null,
    ...change,
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    seen.push(`${request.method} ${request.url} ${Buffer.concat(chunks).toString()}`)
    const answer = (status: number, body: object) =>
      response.writeHead(cluster.status ?? status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (request.headers.authorization !== 'Bearer of-the-broker') return answer(401, { kind: 'Status', code: 401 })
    if (request.method === 'GET') {
      const known = cluster.pod !== null && request.url === '/api/v1/namespaces/default/pods/runner-1'
      return known ? answer(200, { kind: 'Pod', ...cluster.pod }) : answer(404, { kind: 'Status', code: 404 })
    }
    const { audiences, username, extra, authenticated, review } = cluster
    const status = authenticated
      ? { authenticated, audiences, user: { username, uid: 'u', groups: [], extra }, ...review }
      : { user: {}, error: '[invalid bearer token, service account token has expired]' }
    return answer(201, { kind: 'TokenReview', apiVersion: 'authentication.k8s.io/v1', status })
  })
  const port = await listening(server)
  server.unref()
  servers.push(() => server.close())
  return { url: `http://127.0.0.1:${port}`, seen, close: () => server.close() }
}

const servers: (() => void)[] = []
after(() => {
  for (const close of servers) close()
  rmSync(dir, { recursive: true })
})

interface Change extends Partial<Cluster> {
  readonly sandbox?: string
  readonly serviceAccounts?: readonly string[]
  readonly token?: string
}

async function attempt({
  sandbox,
  serviceAccounts = ['*/*'],
  token,
  ...cluster
}: Change = {}): Promise<Attempt & { readonly seen: readonly string[]; readonly close: () => void }> {
  const parts = testParts()
  const { url, seen, close } = await apiServer(cluster)
  const isolation = new Map([['gvisor', 'gvisor']])
  const check = kubernetesCheck(
    { api: url, caFile: '', tokenFile, audience: 'plat-identity', serviceAccounts, isolation },
    parts,
  )
  const text = token ?? signJws(ephemeralSigner(), {}, { exp: Math.floor(parts.clock.now() / 1000) + 600 })
  return { check, proof: proofOf('kubernetes', { token: text, sandbox: sandbox ?? null }), seen, close }
}

const refused = (reason: RegExp, change: Change) => ({ reason, ask: () => attempt(change) })
const withPod = (change: Record<string, object>) => ({ pod: { ...pod(), ...change } })

proofCheckSuite({
  name: 'kubernetes',
  substrate: {
    check: 'kubernetes',
    attestation: 'token-review',
    platform: 'kubernetes',
    sandbox: UID,
    workload: 'system:serviceaccount:default:runner',
    isolation: 'gvisor',
    digest: DIGEST,
  },
  accepted: () => attempt({ sandbox: 'runner-1' }),
  async replayed() {
    const first = await attempt()
    return [first, { ...first, context: { ...context, agent: 'another' } }]
  },
  // The API server judges signatures; what is not a strict JWS never reaches it.
  tampered: () => attempt({ token: 'a.b.c=' }),
  wrongAnchor: () => attempt({ authenticated: false }),
  expired: () => attempt({ authenticated: false }),
  async unreachable() {
    const requested = await attempt()
    requested.close()
    return requested
  },
  refused: {
    'a review that names a user and says no': refused(/authenticate/, { review: { authenticated: false } }),
    'a review that says neither yes nor no': refused(/authenticate/, { review: { authenticated: undefined } }),
    'a review that says yes beside an error': refused(/authenticate/, { review: { error: 'the webhook failed' } }),
    'a token for another audience': refused(/audience/, { audiences: ['https://kubernetes.default.svc'] }),
    'an answer without audiences': refused(/audience/, { audiences: [] }),
    'a user who is not a service account': refused(/no service account/, { username: 'system:admin' }),
    'a name of more parts': refused(/no service account/, { username: 'system:serviceaccount:default:a:b' }),
    'a token that is bound to no pod': refused(/no pod/, { extra: {} }),
    'a token of two pods': refused(/no pod/, {
      extra: {
        'authentication.kubernetes.io/pod-name': ['runner-1'],
        'authentication.kubernetes.io/pod-uid': [UID, 'b'],
      },
    }),
    'a pod of another namespace': refused(/namespace/, { username: 'system:serviceaccount:prod:runner' }),
    'a service account that is not listed': refused(/service account/, { serviceAccounts: ['default/other'] }),
    'a pod that is not the named sandbox': refused(/sandbox/, { sandbox: 'runner-2' }),
    'a deleted pod whose token still works': refused(/gone/, { pod: null }),
    'a pod that was made anew': refused(/replaced/, withPod({ metadata: { uid: 'another' } })),
    'a pod that is being deleted': refused(
      /being deleted/,
      withPod({ metadata: { uid: UID, deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    ),
    'a pod that has ended': refused(/ended/, withPod({ status: { phase: 'Succeeded' } })),
  },
})

test('kubernetes: the review names our audience, and the pod is read after it', async () => {
  // Shows D1.proof.check.kubernetes.
  const { check, proof, seen } = await attempt()
  await check.verify(proof, context)
  assert.match(
    seen[0] ?? '',
    /^POST \/apis\/authentication\.k8s\.io\/v1\/tokenreviews .*"audiences":\["plat-identity"\]/,
  )
  assert.match(seen[1] ?? '', /^GET \/api\/v1\/namespaces\/default\/pods\/runner-1 $/)
})

test('kubernetes: an API server that answers errors establishes nothing', async () => {
  for (const status of [401, 403, 429, 500]) {
    const { check, proof } = await attempt({ status })
    assert.equal((await check.verify(proof, context)).kind, 'unreachable', String(status))
  }
})

test('kubernetes: an isolation that the class is not known for, and the digest of one of two containers, are not stated', async () => {
  const two = { phase: 'Running', containerStatuses: [{ imageID: DIGEST }, { imageID: DIGEST }] }
  const { check, proof } = await attempt(withPod({ spec: { runtimeClassName: 'runc' }, status: two }))
  const verdict = await check.verify(proof, context)
  assert.ok(verdict.kind === 'established' && !('isolation' in verdict.substrate) && !('digest' in verdict.substrate))
})
