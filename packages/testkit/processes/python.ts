import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const CACHE = path.resolve(import.meta.dirname, '../../../node_modules/.cache/plat-python')
/** Time to install the packages once, in milliseconds. */
const INSTALL_TIMEOUT_MS = 480_000

/** A Python with packages, or the reason why there is none. */
export type Python = { readonly path: string } | { readonly missing: string }

/** Resolves to a Python with the packages of a requirements file, in a virtual environment that is created once for each content. */
export async function pythonWith(requirements: string): Promise<Python> {
  const key = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 16)
  const dir = path.join(CACHE, key)
  const python = path.join(dir, 'bin/python')
  const complete = path.join(dir, 'complete')
  if (existsSync(complete)) return { path: python }
  try {
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(CACHE, { recursive: true })
    await run('python3', ['-m', 'venv', dir])
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', requirements]
    await run(python, install, { timeout: INSTALL_TIMEOUT_MS })
    writeFileSync(complete, '')
    return { path: python }
  } catch (error) {
    const [line = 'no reason'] = (error instanceof Error ? error.message : String(error)).split('\n')
    return { missing: `python3 with the packages of ${path.basename(requirements)}: ${line}` }
  }
}
