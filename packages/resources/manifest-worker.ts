import { parentPort } from 'node:worker_threads'
import { readManifest } from './manifest.ts'
import type { ManifestQuestion } from './manifest-aside.ts'

/** Worker thread of `readManifestAside`. A thrown error ends it. */
parentPort?.on('message', ({ kind, text }: ManifestQuestion) => parentPort?.postMessage(readManifest(kind, text)))
