import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type JsonObject, systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { freePort } from '@plat/testkit/local'
import type { Binaries } from './binaries.ts'

/** Group `system:masters`: what the test writes in the operator's place. */
export const ADMIN_TOKEN = 'admin'
/** How long the server may take until it is ready, in milliseconds: far more than it needs. */
const START_MS = 120_000

/** Of a single answer. */
const LIMITS = { maxBytes: 16 * 1024 * 1024, timeoutMs: 60_000 }

/** An answer of the API server. */
export interface ApiServerResponse {
  readonly status: number
  readonly body: JsonObject
}

/** A kube-apiserver of this test's own, with its etcd. */
export interface ApiServer {
  readonly url: string
  readonly caFile: string
  readonly dir: string
  /** As administrator, unless there is a token. A PATCH is a merge patch. */
  ask(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: object,
    token?: string,
  ): Promise<ApiServerResponse>
  stop(): Promise<void>
}

/** Starts both in a separate folder, on free loopback ports. Rejects with the path of the logs. */
export async function startApiServer(binaries: Binaries): Promise<ApiServer> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'plat-cluster-'))
  const [client, peer, secure] = [await freePort(), await freePort(), await freePort()]
  const etcdUrl = `http://127.0.0.1:${client}`
  const peers = `http://127.0.0.1:${peer}`
  const children = [
    start(dir, 'etcd', binaries.etcd, [
      `--data-dir=${dir}/etcd`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=${peers}`,
      `--initial-advertise-peer-urls=${peers}`,
      `--initial-cluster=default=${peers}`,
      '--unsafe-no-fsync',
    ]),
    start(dir, 'kube-apiserver', binaries.apiServer, [`--etcd-servers=${etcdUrl}`, ...serverFlags(dir, secure)]),
  ]
  const url = `https://127.0.0.1:${secure}`
  const caFile = path.join(dir, 'certs/apiserver.crt')
  const dialer = createDialer({ clock: systemClock, log: silentLog })
  const stop = async () => {
    await dialer.close()
    await Promise.all(children.map(end))
    rmSync(dir, { recursive: true })
  }
  const ask: ApiServer['ask'] = async (method, where, body, token = ADMIN_TOKEN) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const { status, bytes } = await dialer.fetchBytes(new URL(where, url), 'jwks', {
      caPEM: readFileSync(caFile, 'utf8'),
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': type },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...LIMITS,
    })
    const text = Buffer.from(bytes).toString()
    return { status, body: text.startsWith('{') ? JSON.parse(text) : { text } }
  }
  await ready(children, dir, ask)
  return { url, caFile, dir, ask, stop }
}

function serverFlags(dir: string, port: number): readonly string[] {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const file = (name: string, content: string | Buffer) => {
    writeFileSync(path.join(dir, name), content, { mode: 0o600 })
    return path.join(dir, name)
  }
  const issuer = 'https://kubernetes.default.svc'
  return [
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${dir}/certs`,
    `--token-auth-file=${file('tokens.csv', `${ADMIN_TOKEN},admin,admin,system:masters\n`)}`,
    `--service-account-issuer=${issuer}`,
    `--api-audiences=${issuer}`,
    `--service-account-signing-key-file=${file('sa.key', privateKey.export({ format: 'pem', type: 'pkcs8' }))}`,
    `--service-account-key-file=${file('sa.pub', publicKey.export({ format: 'pem', type: 'spki' }))}`,
    '--authorization-mode=RBAC',
    '--service-cluster-ip-range=10.0.0.0/24',
  ]
}

function start(dir: string, name: string, file: string, args: readonly string[]): ChildProcess {
  const log = openSync(path.join(dir, `${name}.log`), 'w')
  return spawn(file, args, { stdio: ['ignore', log, log] })
}

async function ready(children: readonly ChildProcess[], dir: string, ask: ApiServer['ask']): Promise<void> {
  const deadline = systemClock.monotonic() + START_MS
  for (;;) {
    const answer = await ask('GET', '/readyz').catch(() => null)
    if (answer?.status === 200) return
    const ended = children.some(({ exitCode }) => exitCode !== null)
    if (ended || systemClock.monotonic() > deadline) throw new Error(`the API server did not start: logs in ${dir}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
