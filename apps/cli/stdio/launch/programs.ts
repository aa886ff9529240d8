import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'

/** Returns a path of a resource: relative ones begin at the governed directory, `~/` at the home directory. */
export function resolvedPath(dir: string, path: string): string {
  return path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : resolve(dir, path)
}

/** Returns why a command cannot be run, with the fix; null if it can. A name without a slash is looked for on the PATH. */
export function commandProblem(command: string, cwd: string, path: string): string | null {
  if (command.includes('/')) {
    const file = resolve(cwd, command)
    if (!existsSync(file)) return `${file} does not exist; name a program, or one on the PATH`
    return isProgram(file) ? null : `${file} cannot be executed; make it executable`
  }
  const folders = path.split(':').filter((folder) => isAbsolute(folder))
  if (folders.some((folder) => isProgram(join(folder, command)))) return null
  return `no program ${JSON.stringify(command)} is on the PATH; install it, or write its path`
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}
