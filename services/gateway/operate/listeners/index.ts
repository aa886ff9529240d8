export { createProfiling } from './profiling.ts'
export { bindToSvid } from './svid.ts'
export { tlsOf } from './tls.ts'
