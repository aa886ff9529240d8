export { createLog, type Log, type LogOptions, silentLog } from './log.ts'
export { onShutdown, type ShutdownReason } from './shutdown.ts'
export { giveBackStartMemory } from './start-memory.ts'
export { printUsage, printVersion, refuseStart } from './status.ts'
