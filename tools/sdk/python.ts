import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { pythonWith } from '@plat/testkit/processes/python'

const run = promisify(execFile)

const HOME = 'sdk/python'
const PARTS = ['pyproject.toml', 'README.md', 'src']
/** Time of every file in the archives, in seconds since the epoch: equal sources give equal archives. */
const TIME = '1577836800'

/**
 * Builds the wheel and the source distribution of the SDK into a folder.
 *
 * @throws Error with what is missing, or what the build backend says.
 */
export async function buildPythonSdk(root: string, out: string): Promise<void> {
  const python = await pythonWith(path.join(import.meta.dirname, 'requirements.txt'))
  if ('missing' in python) throw new Error(python.missing)
  const staged = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
  try {
    const isSource = (file: string) => !file.includes('__pycache__')
    for (const part of PARTS)
      cpSync(path.join(root, HOME, part), path.join(staged, part), { recursive: true, filter: isSource })
    cpSync(path.join(root, 'LICENSE'), path.join(staged, 'LICENSE'))
    mkdirSync(out, { recursive: true })
    const env = { ...process.env, SOURCE_DATE_EPOCH: TIME }
    await run(python.path, ['-m', 'hatchling', 'build', '-d', out], { cwd: staged, env })
  } finally {
    rmSync(staged, { recursive: true, force: true })
  }
}
