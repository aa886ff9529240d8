import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Manifest } from '@plat/resources'
import { ancestors, findOnPath, governingPaths, tryOut } from '../../run/isolation.ts'
import type { PlatFolder } from '../../shared/home.ts'
import { resolvedPath } from './programs.ts'

export type Isolation = NonNullable<NonNullable<Manifest<'MCPServer'>['spec']['stdio']>['isolation']>

/** How a server is started. */
export interface Sandboxed {
  /** Precedes the command; empty without isolation. */
  readonly prefix: readonly string[]
  /** Why servers cannot be started in it; null if they can. */
  readonly problem: string | null
}

/** Starts servers under bubblewrap where it works. */
export class Sandbox {
  readonly #home: PlatFolder
  readonly #bwrap = findOnPath('bwrap')
  #obstacle: string | null | undefined

  constructor(home: PlatFolder) {
    this.#home = home
  }

  /** Why bubblewrap cannot be used; null: it can. */
  get obstacle(): string | null {
    if (this.#bwrap === null) return 'bubblewrap (bwrap) is not installed'
    this.#obstacle ??= tryOut(this.#bwrap, this.#options({}, this.#home.dir))
    return this.#obstacle
  }

  /** Wraps a server that runs in `cwd`. Rules that cannot be enforced keep it from being started. */
  wrap(isolation: Isolation, cwd: string): Sandboxed {
    const { mode = 'auto', network = true, writable, hidden = [] } = isolation
    const hasRules = !network || writable !== undefined || hidden.length > 0
    if (mode === 'off')
      return { prefix: [], problem: hasRules ? 'stdio.isolation: rules need a mode other than off' : null }
    if (this.#bwrap === null || this.obstacle !== null) {
      const isNeeded = hasRules || mode === 'on'
      const problem = `stdio.isolation: ${this.obstacle}; install it, or remove the rules and use mode: off`
      return { prefix: [], problem: isNeeded ? problem : null }
    }
    const missing = (writable ?? []).find((path) => !existsSync(this.#resolved(path)))
    if (missing !== undefined)
      return { prefix: [], problem: `stdio.isolation.writable: ${this.#resolved(missing)} does not exist` }
    return { prefix: [this.#bwrap, ...this.#options(isolation, cwd), '--'], problem: null }
  }

  #resolved(path: string): string {
    return resolvedPath(this.#home.dir, path)
  }

  /** The folder of the bridge's socket, if it is not in `.plat`. */
  #socketFolders(plat: string): string[] {
    const folder = dirname(this.#home.stdioSocket)
    return existsSync(folder) && realpathSync(folder) !== plat ? [folder] : []
  }

  /**
   * As for `plat run`: `.plat` is empty, resources and `gateway.json` are read-only, and neither they nor a folder above them can be moved
   * away. A pid namespace hides other processes, and ends with the bridge: nothing the server started survives it.
   */
  #options({ network = true, writable, hidden = [] }: Isolation, cwd: string): string[] {
    const dir = realpathSync(this.#home.dir)
    const plat = realpathSync(dirname(this.#home.env))
    const rw = (path: string) => ['--dev-bind', path, path]
    const open = writable?.map((path) => realpathSync(this.#resolved(path))).toSorted() ?? ['/']
    const within = (path: string) => open.some((one) => one === '/' || path === one || path.startsWith(`${one}/`))
    const base = writable === undefined ? rw('/') : [...READ_ONLY, ...inScratch([dir, cwd]), ...open.flatMap(rw)]
    return [
      ...base,
      ...['--unshare-user-try', '--unshare-pid', '--unshare-ipc', '--cap-drop', 'ALL', '--die-with-parent'],
      ...(network ? [] : ['--unshare-net']),
      ...ancestors(dir).filter(within).flatMap(rw),
      ...governingPaths(this.#home).flatMap((path) => ['--ro-bind', path, path]),
      ...['--tmpfs', plat],
      ...[...this.#socketFolders(plat), ...hidden.map((path) => this.#resolved(path))].flatMap(hide),
      ...['--proc', '/proc', '--chdir', cwd],
    ]
  }
}

/** Everything is read-only, and the folder for temporary files is empty, private and writable. */
const READ_ONLY = ['--ro-bind', '/', '/', '--dev', '/dev', '--tmpfs', '/tmp']

/** Folders that the private folder for temporary files would cover. */
function inScratch(folders: readonly string[]): string[] {
  return folders.filter((folder) => folder.startsWith('/tmp/')).flatMap((folder) => ['--ro-bind', folder, folder])
}

/** A path that does not exist hides nothing. */
function hide(path: string): string[] {
  if (!existsSync(path)) return []
  const real = realpathSync(path)
  return statSync(real).isDirectory() ? ['--tmpfs', real] : ['--ro-bind', '/dev/null', real]
}
