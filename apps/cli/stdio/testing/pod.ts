import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { isObject } from '@plat/core'
import { tempFolder } from '@plat/testkit/local'
import { unpackDebianPackage } from '@plat/testkit/processes/debian'
import { copyRuntime } from '../pod/runtime.ts'

const BUILD = join(import.meta.dirname, '../../../../tools/package/stdio.ts')

/** An object of a cluster. */
export type Rendered = Readonly<Record<string, unknown>>

/** Path of bubblewrap, which is unpacked if it is not installed. */
export function findBubblewrap(): string {
  const found = (process.env.PATH ?? '').split(':').find((folder) => existsSync(join(folder, 'bwrap')))
  return join(found ?? join(unpackDebianPackage('bubblewrap', tempFolder()), 'usr/bin'), 'bwrap')
}

/** Builds the bridge and copies it with its runtime, as the init container does. */
export function copiedRuntime(): string {
  const bundle = join(tempFolder(), 'bridge.mjs')
  execFileSync(process.execPath, [BUILD, bundle])
  const folder = join(tempFolder(), 'runtime')
  mkdirSync(folder)
  copyRuntime(folder, bundle)
  return folder
}

export interface PodOptions {
  readonly bwrap: string
  readonly runtime: string
  readonly deployment: Rendered
  /** Secrets of the namespace by name, with their values. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** Options of bubblewrap that make up the image. */
  readonly image: readonly string[]
  /** Variables of the image. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Pod {
  readonly port: number
  /** Lines of the container's log. */
  readonly log: Readonly<Record<string, unknown>>[]
  readonly process: ChildProcess
  stop(): Promise<number | null>
}

interface Container {
  readonly command: readonly string[]
  readonly args: readonly string[]
  readonly env: readonly { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[]
  readonly volumeMounts: readonly { name: string; mountPath: string; readOnly?: boolean }[]
}

interface Volume {
  readonly name: string
  readonly secret?: { readonly secretName: string }
}

/** Runs the container of a Deployment as a process, with its volumes where they are mounted. */
export async function startPod(t: TestContext, options: PodOptions): Promise<Pod> {
  const { bwrap, runtime, deployment, secrets, image, env = {} } = options
  const { containers, volumes } = podSpecOf(deployment)
  const [container] = containers
  if (container === undefined) throw new Error('no container')
  const folderOf = (volume: Volume) =>
    volume.name === 'bridge' ? runtime : folderWith(secrets[volume.secret?.secretName ?? ''])
  const folders = new Map(volumes.map((volume) => [volume.name, folderOf(volume)]))
  const mounts = container.volumeMounts.flatMap(({ name, mountPath, readOnly }) => [
    readOnly === true ? '--ro-bind' : '--bind',
    folders.get(name) ?? '',
    mountPath,
  ])
  const values = container.env.map(({ name, value, valueFrom }) => {
    const { name: secret = '', key = '' } = valueFrom?.secretKeyRef ?? {}
    return [name, value ?? secrets[secret]?.[key] ?? ''] as const
  })
  const variables = Object.entries({ ...env, ...Object.fromEntries(values) })
  const isolation = [
    '--unshare-pid',
    '--unshare-ipc',
    '--die-with-parent',
    '--clearenv',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
  ]
  const set = variables.flatMap(([name, value]) => ['--setenv', name, value])
  // A Service would map its port to that of the container; here several run on one machine.
  const command = [...container.command, ...container.args, '-port=0', '-host=127.0.0.1']
  const child = spawn(bwrap, [...image, ...isolation, ...set, ...mounts, '--', ...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => void child.kill('SIGKILL'))
  const { log, port } = watched(child)
  return { port: await port, log, process: child, stop: () => stopped(child) }
}

function podSpecOf(deployment: Rendered): {
  readonly containers: readonly Container[]
  readonly volumes: readonly Volume[]
} {
  const { template } = Object(deployment.spec)
  return template.spec
}

function folderWith(files: Readonly<Record<string, string>> = {}): string {
  const folder = join(tempFolder(), 'volume')
  mkdirSync(folder)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

function watched(child: ChildProcess): { readonly log: Pod['log']; readonly port: Promise<number> } {
  const log: Record<string, unknown>[] = []
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let rest = ''
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const lines = `${rest}${text}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const logged: unknown = JSON.parse(line)
      if (!isObject(logged)) continue
      log.push(logged)
      if (logged.msg === 'listening') resolve(Number(logged.port))
    }
  })
  child.once('exit', (code) => reject(new Error(`the container ended with ${code}: ${errors}`)))
  return { log, port: promise }
}

/** Sends the signal to the first process of the container, as a kubelet does: that of bubblewrap would kill it. */
async function stopped(child: ChildProcess): Promise<number | null> {
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  const [init] = childrenOf(child.pid ?? 0)
  const [first] = childrenOf(init ?? 0)
  if (first !== undefined) process.kill(first, 'SIGTERM')
  return await ended
}

function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.trim().split(' ').map(Number)
}

/** A Service: connections to its address go to the port of the pod that it has at that time. */
export async function startService(t: TestContext, address: string, port: number) {
  let target = 0
  const server = createServer((from) => {
    const to = connect(target, '127.0.0.1')
    from.on('error', () => to.destroy()).pipe(to)
    to.on('error', () => from.destroy()).pipe(from)
    to.on('close', () => from.destroy())
    from.on('close', () => to.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, address, resolve)
  })
  t.after(() => void server.close())
  return {
    lead(to: number) {
      target = to
    },
  }
}
