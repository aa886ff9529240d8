import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { reasonOf } from '@plat/core'
import { loginsFile } from '../login/logins.ts'
import { tokenFilesOf } from '../shared/contexts.ts'
import type { PlatFolder } from '../shared/home.ts'
import { CommandError } from '../shared/output.ts'
import { usableSocketPath } from '../stdio/launch/socket.ts'
import type { IsolationMode } from './isolation-modes.ts'
import { terminalFilter } from './terminal-filter.ts'

/** How the program is started. */
export interface Isolation {
  /** True if bubblewrap hides `.plat` and all other processes from the program. */
  readonly isolated: boolean
  /** One line for the person who starts the program: what protects the keys and what does not. */
  readonly notice: string
  /** The command line that runs `command` this way. */
  wrap(command: readonly string[]): readonly string[]
}

/** File descriptors that bubblewrap gets beside the terminal's three: one to report the pid on, one to read the filter from. */
export const INFO_FD = 3
export const FILTER_FD = 4

/** Time limit of the trial start of bubblewrap, in milliseconds. */
const TRIAL_MS = 5_000

const NOT_ISOLATED = "plat run: not isolated: the program runs as you and can read plat's keys, tokens and logins"

const ISOLATED =
  "plat run: isolated: the program cannot see .plat, plat's logins or other processes, and cannot change the resources;" +
  ' it can read and write your other files and use the network'

/**
 * Decides how the program is started. `folder` is the folder of this run, the only part of `.plat` that the program sees. `home` is null for a
 * gateway of another machine.
 * @throws CommandError if the mode is `on` and bubblewrap is not installed or cannot be used.
 */
export function chooseIsolation(mode: IsolationMode, home: PlatFolder | null, folder: string): Isolation {
  if (mode === 'off') return plain(`${NOT_ISOLATED} (-isolate off)`)
  const exposed = exposedSecrets(process.env, [process.cwd(), folder, ...(home === null ? [] : [home.dir])])
  const bwrap = findOnPath('bwrap')
  const options = bwrap === null ? [] : sandboxOptions(home, folder)
  const obstacle = exposed ?? (bwrap === null ? 'bubblewrap (bwrap) is not installed' : tryOut(bwrap, options))
  if (bwrap !== null && obstacle === null) return sandboxed(bwrap, options)
  if (mode === 'on') throw new CommandError(`-isolate on: ${obstacle}; mend that, or use -isolate off`)
  return plain(`${NOT_ISOLATED}: ${obstacle}`)
}

function plain(notice: string): Isolation {
  return { isolated: false, notice, wrap: (command) => command }
}

/**
 * bubblewrap itself ignores the signals of the terminal, or Ctrl-C would end it before the program has decided what to do; the
 * program starts with the default dispositions.
 */
function sandboxed(bwrap: string, options: readonly string[]): Isolation {
  const filter = terminalFilter(process.arch) === null ? [] : ['--seccomp', String(FILTER_FD)]
  const prefix = ['sh', '-c', 'trap "" INT TERM HUP QUIT; exec "$@"', 'sh', bwrap, ...options]
  const inner = ['--info-fd', String(INFO_FD), ...filter, '--', 'env', '--default-signal=INT,TERM,HUP,QUIT']
  return { isolated: true, notice: ISOLATED, wrap: (command) => [...prefix, ...inner, ...command] }
}

/**
 * The file system as it is, except: `.plat` is empty but for the folder of this run, the resources and `gateway.json` are read-only, and
 * neither they nor a folder above them can be moved away (a mount point cannot be renamed). A pid namespace hides the processes that
 * hold keys in memory or have `.plat` open (`/proc/<pid>/root`).
 */
function sandboxOptions(home: PlatFolder | null, folder: string): string[] {
  return [
    ...['--dev-bind', '/', '/', '--unshare-user-try', '--unshare-pid', '--cap-drop', 'ALL', '--die-with-parent'],
    ...(home === null ? [] : homeOptions(home, folder)),
    ...secretOptions(process.env),
    ...['--proc', '/proc', '--chdir', process.cwd()],
  ]
}

function homeOptions(home: PlatFolder, folder: string): string[] {
  const dir = realpathSync(home.dir)
  const plat = realpathSync(dirname(home.env))
  const bindToItself = (path: string) => ['--dev-bind', path, path]
  const readOnly = governingPaths(home).flatMap((path) => ['--ro-bind', path, path])
  return [
    ...ancestors(dir).flatMap(bindToItself),
    ...readOnly,
    ...['--tmpfs', plat, ...socketFolder(home)],
    ...bindToItself(join(plat, 'run', folder.slice(folder.lastIndexOf('/') + 1))),
  ]
}

/** Returns why the folder with contexts and logins cannot be hidden: the program needs a folder in it. Null if it can. */
function exposedSecrets(env: NodeJS.ProcessEnv, needed: readonly string[]): string | null {
  const folder = dirname(loginsFile(env))
  const isNeeded = needed.some((path) => path === folder || path.startsWith(`${folder}/`))
  return isNeeded ? `PLAT_CONTEXTS is in ${folder}, which the program needs; move it to a folder for it alone` : null
}

/**
 * Hides the folder with contexts and logins, also from a login that follows, and files with tokens: with them the program could approve its
 * own calls.
 */
function secretOptions(env: NodeJS.ProcessEnv): string[] {
  const folder = dirname(loginsFile(env))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const files = [env.PLAT_ADMIN_TOKEN_FILE, env.PLAT_BROKER_TOKEN_FILE, ...tokenFilesOf(env)]
  const present = files.flatMap((file) => (file !== undefined && existsSync(file) ? [realpathSync(file)] : []))
  return [...new Set(present)]
    .flatMap((file) => ['--ro-bind', '/dev/null', file])
    .concat(['--tmpfs', realpathSync(folder)])
}

/** Hides the socket of the stdio bridge where it is not in `.plat`: a program could otherwise call servers past the gateway. */
function socketFolder({ stdioSocket }: PlatFolder): string[] {
  const used = usableSocketPath(stdioSocket)
  const folder = dirname(used)
  return used !== stdioSocket && existsSync(folder) ? ['--tmpfs', realpathSync(folder)] : []
}

/** The folder and all folders above it, the highest first, without the root. */
export function ancestors(path: string): string[] {
  const above = dirname(path)
  return above === path ? [] : [...ancestors(above), path]
}

/** The files and folders outside `.plat` that decide what the program may do: resources, `gateway.json` and every file it names. */
export function governingPaths(home: PlatFolder): string[] {
  const own = [join(home.dir, 'resources'), join(home.dir, 'gateway.json')]
  const plat = `${dirname(home.env)}/`
  const named = stringsOf(readJson(home.gatewayConfig)).filter(
    (text) => text.startsWith(`${home.dir}/`) && !text.startsWith(plat),
  )
  return [...new Set([...own, ...named])].filter((path) => existsSync(path)).map((path) => realpathSync(path))
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new CommandError(`${path} cannot be read (${reasonOf(error)}); start plat up again to write it`)
  }
}

function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsOf) : []
}

/** Returns why bubblewrap cannot be used on this machine, or null. Some kernels forbid the namespaces it needs. */
export function tryOut(bwrap: string, options: readonly string[]): string | null {
  const command = ['--', 'env', '--default-signal=INT', 'true']
  const trial = spawnSync(bwrap, [...options, ...command], { encoding: 'utf8', timeout: TRIAL_MS })
  if (trial.status === 0) return null
  const line = trial.error === undefined ? trial.stderr.trim().split('\n').at(-1) : trial.error.message
  return `bubblewrap does not work on this machine (${line || `exit code ${trial.status}`})`
}

export function findOnPath(program: string): string | null {
  if (process.platform !== 'linux') return null
  const folders = (process.env.PATH ?? '').split(':').filter((folder) => folder.startsWith('/'))
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path)) ?? null
}

/** Returns the pid of the program from what bubblewrap reports about its namespace; null if it has ended or cannot be found. */
export function programPid(info: string): number | null {
  try {
    const init = /"child-pid": *(\d+)/.exec(info)?.[1]
    const pid = Number.parseInt(readFileSync(`/proc/${init}/task/${init}/children`, 'utf8'), 10)
    return Number.isInteger(pid) ? pid : null
  } catch {
    return null
  }
}
