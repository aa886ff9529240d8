import { Worker } from 'node:worker_threads'
import type { Kind } from './kinds/kinds.ts'
import { linesOf, MANIFEST_MAX_BYTES, type ManifestResult, readAnyManifest, readManifest } from './manifest.ts'
import { THREAD_OPTIONS, THREAD_READ_MS, WorkerThread } from './worker-thread.ts'

/** Longest text parsed synchronously, in characters; each thousand may take several milliseconds. */
const AT_ONCE_MAX_CHARS = 4 * 1024

/**
 * Requests of the worker thread: the object in a text (`ManifestResult`), of any kind if `kind` is null, or the lines of its fields
 * (`number[]`).
 */
export type ManifestRequest =
  | { readonly kind: Kind | null; readonly text: string }
  | { readonly paths: readonly string[]; readonly text: string }

/** Like `readManifest`, but a long text is parsed on a thread, with a deadline: the YAML parser cannot yield. */
export async function readManifestAside(kind: Kind, text: string): Promise<ManifestResult> {
  if (text.length <= AT_ONCE_MAX_CHARS || text.length > MANIFEST_MAX_BYTES) return readManifest(kind, text)
  return (await thread.ask<ManifestResult>({ kind, text })) ?? UNREADABLE
}

/** Like `readAnyManifest`, likewise. */
export async function readAnyManifestAside(text: string): Promise<ManifestResult> {
  if (text.length <= AT_ONCE_MAX_CHARS || text.length > MANIFEST_MAX_BYTES) return readAnyManifest(text)
  return (await thread.ask<ManifestResult>({ kind: null, text })) ?? UNREADABLE
}

/** Like `linesOf`, likewise. */
export async function linesOfAside(text: string, paths: readonly string[]): Promise<readonly number[]> {
  if (text.length <= AT_ONCE_MAX_CHARS) return linesOf(text, paths)
  return (await thread.ask<readonly number[]>({ text, paths })) ?? paths.map(() => 1)
}

const UNREADABLE: ManifestResult = {
  object: null,
  problems: [{ line: 1, path: '', message: `cannot be read within ${THREAD_READ_MS / 1000} s` }],
}

/** The parser thread of the process. */
const thread = new WorkerThread(() => new Worker(new URL('./manifest-worker.ts', import.meta.url), THREAD_OPTIONS))
