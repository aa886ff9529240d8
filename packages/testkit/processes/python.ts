import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { INSTALL_TIMEOUT_MS, installOnce } from './install-once.ts'

const run = promisify(execFile)

const CACHE = path.resolve(import.meta.dirname, '../../../node_modules/.cache/plat-python')

/** A Python with packages, or the reason why there is none. */
export type Python = { readonly path: string } | { readonly missing: string }

/**
 * Resolves to a Python with the packages of a requirements file, in a virtual environment of `interpreter` that is created once for each content
 * and interpreter, within `timeoutMs`.
 */
export async function pythonWith(
  requirements: string,
  interpreter = 'python3',
  timeoutMs = INSTALL_TIMEOUT_MS,
): Promise<Python> {
  const content = createHash('sha256').update(readFileSync(requirements))
  if (interpreter !== 'python3') content.update(interpreter)
  const key = content.digest('hex').slice(0, 16)
  const dir = path.join(CACHE, key)
  const python = path.join(dir, 'bin/python')
  const reason = await installOnce(dir, async () => {
    mkdirSync(CACHE, { recursive: true })
    await run(interpreter, ['-m', 'venv', dir])
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', requirements]
    await run(python, install, { timeout: timeoutMs })
  })
  return reason === null
    ? { path: python }
    : { missing: `${interpreter} with the packages of ${path.basename(requirements)}: ${reason}` }
}
