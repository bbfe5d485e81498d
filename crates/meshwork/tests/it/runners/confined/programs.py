# Work with the parts of a system that programs use most. The result is the number of parts, and those without a program.
import asyncio, concurrent.futures, hashlib, json, multiprocessing, os, shutil, socket, sqlite3, ssl, subprocess, sys, threading

done = []

def processes():
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]

def lock():
    with multiprocessing.Lock():
        pass

def command():
    assert subprocess.run(['sh', '-c', 'echo out'], stdout=subprocess.PIPE).stdout == b'out\n'

def database():
    with sqlite3.connect('db') as db:
        db.execute('create table t (x)')
        db.execute('insert into t values (1)')
    assert list(sqlite3.connect('db').execute('select x from t')) == [(1,)]

def tls():
    assert ssl.create_default_context().get_ca_certs() is not None

def names():
    assert socket.getaddrinfo('localhost', 80)
    import pwd
    pwd.getpwuid(0)

def loop():
    async def work():
        process = await asyncio.create_subprocess_exec('echo', 'x', stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0]
    assert asyncio.run(work()) == b'x\n'

def terminal():
    import pty
    pty.openpty()

def git():
    subprocess.run(['git', 'init', '-q', 'repo'], check=True)
    subprocess.run(['git', '-C', 'repo', '-c', 'user.name=a', '-c', 'user.email=b', 'commit', '-q', '--allow-empty', '-m', 'x'], check=True)

def node():
    code = "require('fs').writeFileSync('n', 'x'); console.log(require('os').cpus().length > 0)"
    assert subprocess.run(['node', '-e', code], stdout=subprocess.PIPE).stdout == b'true\n'

def bash():
    assert subprocess.run(['bash', '-c', 'cat <(echo x)'], stdout=subprocess.PIPE).stdout == b'x\n'

def numbers():
    import numpy
    assert numpy.arange(3).sum() == 3

skipped = []
for work in (processes, lock, command, database, tls, names, loop, terminal, git, node, bash, numbers):
    if work.__name__ in ('git', 'node', 'bash') and shutil.which(work.__name__) is None:
        skipped.append(work.__name__)
        continue
    try:
        work()
    except ImportError:
        skipped.append(work.__name__)
    done.append(work.__name__)
result = [len(done) + len([s for s in skipped if s not in done]), skipped]
