import assert from 'node:assert/strict'
import type { JsonObject } from '@plat/core'
import type { ApiServer } from './api-server.ts'
import { BROKER } from './broker.ts'

const SANDBOXES = ['agents.x-k8s.io/v1beta1', 'Sandbox', 'sandboxes'] as const
const CLAIMS = ['extensions.agents.x-k8s.io/v1beta1', 'SandboxClaim', 'sandboxclaims'] as const
const POOLS = ['extensions.agents.x-k8s.io/v1beta1', 'SandboxWarmPool', 'sandboxwarmpools'] as const
const SESSIONS = ['plat.dev/v1alpha1', 'AgentSession', 'agentsessions'] as const
const AGENTS = ['plat.dev/v1alpha1', 'Agent', 'agents'] as const
const TIERS = ['plat.dev/v1alpha1', 'TrustTier', 'trusttiers'] as const
type KindRow = readonly [apiVersion: string, kind: string, plural: string]

const CONTAINERS = [{ name: 'agent', image: 'registry.example/agent:1' }]

export interface WarmPodOptions {
  readonly attested?: boolean
  /** The variables of its Agent. */
  readonly env?: readonly object[]
}

/** One warm pod in a separate namespace, with the objects that controllers and operator would write. */
export class WarmPod {
  readonly #server: ApiServer
  readonly namespace: string
  #podUid = ''
  #sandboxUid = ''

  constructor(server: ApiServer, namespace: string) {
    this.#server = server
    this.namespace = namespace
  }

  /** A pool, its Sandbox and the Sandbox's pod, not claimed yet. */
  async create({ attested = false, env = [] }: WarmPodOptions = {}): Promise<void> {
    const tier = `tier-${this.namespace}`
    await this.#must('POST', '/api/v1/namespaces', { metadata: { name: this.namespace } })
    await this.#must('POST', this.#core('serviceaccounts'), { metadata: { name: 'runner' } })
    await this.#make(TIERS, tier, { spec: { attested } }, null)
    await this.#make(AGENTS, 'assistant', { spec: { image: 'x', tier, env } })
    const pool = await this.#make(POOLS, 'pool', { spec: { replicas: 1, sandboxTemplateRef: { name: 'template' } } })
    const spec = { podTemplate: { spec: { containers: CONTAINERS } } }
    this.#sandboxUid = await this.#make(SANDBOXES, 'warm', { ...owned(POOLS, 'pool', pool), spec })
    await this.createPod()
  }

  async createPod(): Promise<void> {
    const { metadata } = owned(SANDBOXES, 'warm', this.#sandboxUid)
    const spec = { serviceAccountName: 'runner', containers: CONTAINERS }
    const pod = await this.#must('POST', this.#core('pods'), { metadata: { ...metadata, name: 'warm' }, spec })
    this.#podUid = uidOf(pod)
  }

  async deletePod(): Promise<void> {
    await this.#must('DELETE', `${this.#core('pods')}/warm`, { gracePeriodSeconds: 0 })
  }

  /** Effect of a claim: the owner of the Sandbox changes, and the claim records it. */
  async adopt(session: { readonly phase: string }): Promise<void> {
    const spec = { agentRef: 'assistant', user: 'ada@example.com', scopes: ['tools:github'] }
    const uid = await this.#make(SESSIONS, 's1', { spec })
    const claimSpec = { warmPoolRef: { name: 'pool' } }
    const claim = await this.#make(CLAIMS, 'claim', { ...owned(SESSIONS, 's1', uid), spec: claimSpec })
    await this.patch('sandbox', owned(CLAIMS, 'claim', claim))
    await this.patch('claim', { status: { sandbox: { name: 'warm' } } })
    const sandboxRef = { name: 'warm', uid: this.#sandboxUid }
    await this.patch('session', { status: { ...session, sandboxRef } })
  }

  async patch(what: 'sandbox' | 'claim' | 'session', body: JsonObject): Promise<void> {
    const where = {
      sandbox: `${this.#collection(SANDBOXES)}/warm`,
      claim: `${this.#collection(CLAIMS)}/claim`,
      session: `${this.#collection(SESSIONS)}/s1`,
    }[what]
    await this.#must('PATCH', 'status' in body ? `${where}/status` : where, body)
  }

  /** A Secret in the pod's namespace. */
  async putSecret(name: string, stringData: Readonly<Record<string, string>>): Promise<void> {
    await this.#must('POST', this.#core('secrets'), { metadata: { name }, stringData })
  }

  /** Lets the broker read this one Secret. */
  async shareSecret(name: string): Promise<void> {
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${this.namespace}`
    const rules = [{ apiGroups: [''], resources: ['secrets'], resourceNames: [name], verbs: ['get'] }]
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'variables' }
    const subjects = [{ kind: 'ServiceAccount', ...BROKER }]
    await this.#must('POST', `${rbac}/roles`, { metadata: { name: 'variables' }, rules })
    await this.#must('POST', `${rbac}/rolebindings`, { metadata: { name: 'variables' }, roleRef, subjects })
  }

  /** The API server's response to a forbidden change of the session. */
  tryPatchSession(body: JsonObject) {
    return this.#server.ask('PATCH', `${this.#collection(SESSIONS)}/s1`, body)
  }

  async session(): Promise<JsonObject> {
    return this.#must('GET', `${this.#collection(SESSIONS)}/s1`)
  }

  /** A projected token of the pod, as the kubelet would mount it. */
  async token(audience = 'plat-bootstrap'): Promise<string> {
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'warm', uid: this.#podUid }
    const where = `${this.#core('serviceaccounts')}/runner/token`
    const { status } = await this.#must('POST', where, { spec: { audiences: [audience], boundObjectRef } })
    const { token }: { token?: string } = Object(status)
    assert.ok(token !== undefined)
    return token
  }

  get podUid(): string {
    return this.#podUid
  }

  #core(plural: string): string {
    return `/api/v1/namespaces/${this.namespace}/${plural}`
  }

  #collection([apiVersion, , plural]: KindRow, namespace: string | null = this.namespace): string {
    return `/apis/${apiVersion}${namespace === null ? '' : `/namespaces/${namespace}`}/${plural}`
  }

  async #make(row: KindRow, name: string, object: object, namespace?: null): Promise<string> {
    const metadata = { ...Object(object).metadata, name }
    const body = { ...object, apiVersion: row[0], kind: row[1], metadata }
    return uidOf(await this.#must('POST', this.#collection(row, namespace), body))
  }

  async #must(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', where: string, body?: object): Promise<JsonObject> {
    const answer = await this.#server.ask(method, where, body)
    assert.ok(answer.status < 300, `${method} ${where}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
}

function owned([apiVersion, kind]: KindRow, name: string, uid: string): { readonly metadata: JsonObject } {
  return { metadata: { ownerReferences: [{ apiVersion, kind, name, uid, controller: true }] } }
}

function uidOf(object: JsonObject): string {
  const { uid }: { uid?: string } = Object(object.metadata)
  assert.ok(uid !== undefined)
  return uid
}
