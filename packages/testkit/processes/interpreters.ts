import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const NAME = /^python3(?:\.\d+)?$/

/** An interpreter of this machine. */
export interface Interpreter {
  readonly path: string
  readonly version: string
  readonly minor: number
}

/** Returns the interpreters of Python 3 on the PATH and among those of pyenv that run, the oldest first. */
export async function interpreters(): Promise<readonly Interpreter[]> {
  const pyenv = process.env.PYENV_ROOT ?? path.join(os.homedir(), '.pyenv')
  const versions = path.join(pyenv, 'versions')
  const installed = existsSync(versions) ? await readdir(versions) : []
  const folders = [
    ...(process.env.PATH ?? '').split(path.delimiter),
    ...installed.map((name) => path.join(versions, name, 'bin')),
  ]
  const found = (await Promise.all(folders.map(interpretersIn))).flat()
  return found.sort((a, b) => a.minor - b.minor)
}

async function interpretersIn(folder: string): Promise<readonly Interpreter[]> {
  const names = await readdir(folder).catch((): string[] => [])
  const versions = names
    .filter((name) => NAME.test(name))
    .map(async (name) => {
      const file = path.join(folder, name)
      // A shim of a version that is not chosen does not run.
      const { stdout } = await run(file, ['-c', 'import sys, venv; print(*sys.version_info[:3])']).catch(() => ({
        stdout: '',
      }))
      const [major, minor, patch] = stdout.trim().split(' ').map(Number)
      return major === 3 && minor !== undefined ? [{ path: file, version: `3.${minor}.${patch}`, minor }] : []
    })
  return (await Promise.all(versions)).flat()
}
