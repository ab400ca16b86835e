# Written by CTO Harness beside a check: names the tests that ran, and leaves everything else as it is.
# It is found as `sitecustomize` by PYTHONPATH, and makes room for the one it hides.
import atexit
import errno
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PLACE = os.environ.get("CTO_TEST_IDS")
# It is there as long as every name could be written.
ALL = os.path.join(HERE, "all")
RUNNING = "CTO_TEST_RUNNING"
# On the baseline and in the control: no early stop.
GO_ON = False
# Tests may put others in their place.
OPEN, WRITE, CLOSE, UNLINK, PID = os.open, os.write, os.close, os.unlink, os.getpid
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
# A test may keep this process from writing for a while: what is held back comes with the next name, or at the end.
WAITING = []


def tell(outcome, name):
    line = "%s\t%s\n" % (outcome, name.replace("\n", "\\n"))
    WAITING.append((PID(), line.encode("utf-8", "backslashreplace")))
    try:
        write_all()
    except OSError as error:
        if error.errno in NO_ROOM:
            lost()


def write_all():
    file = OPEN(PLACE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        while WAITING:
            of, line = WAITING[0]
            # What a parent holds back it writes itself.
            if of == PID() and WRITE(file, line) != len(line):
                raise OSError(errno.ENOSPC, "half a name")
            del WAITING[0]
    finally:
        CLOSE(file)


def lost():
    # Fewer names are not fewer tests. To remove a file needs neither room nor a descriptor.
    try:
        UNLINK(ALL)
    except OSError:
        pass


@atexit.register
def at_the_end():
    if any(of == PID() for of, _ in WAITING):
        try:
            write_all()
        except OSError:
            lost()


# What a test runs itself is not a test of the project: only the outermost is told, here and in child processes.
class Depth(object):
    def __init__(self):
        import threading

        self.local = threading.local()

    def stack(self):
        if not hasattr(self.local, "stack"):
            self.local.stack = []
        return self.local.stack

    def enter(self, name):
        self.stack().append([name, None])
        os.environ[RUNNING] = "1"

    def leave(self):
        stack = self.stack()
        entry = stack.pop() if stack else [None, None]
        if not stack:
            os.environ.pop(RUNNING, None)
        return entry if not stack else [None, None]

    def mark(self, outcome):
        stack = self.stack()
        order = ["skipped", "passed", "failed"]
        if stack and (stack[-1][1] is None or order.index(outcome) > order.index(stack[-1][1])):
            stack[-1][1] = outcome


def shared_depth(made=[]):
    if not made:
        made.append(Depth())
    return made[0]


def watch_unittest(result):
    depth = shared_depth()
    kind = result.TestResult

    if GO_ON:
        kind.failfast = property(lambda self: False, lambda self, value: None)

    def before(name, act):
        original = getattr(kind, name, None)
        if original is None:
            return

        def method(self, *args, **kwargs):
            try:
                act(*args)
            except Exception:
                pass
            return original(self, *args, **kwargs)

        method.__name__ = name
        method.__doc__ = original.__doc__
        setattr(kind, name, method)

    def stop(*_):
        name, outcome = depth.leave()
        if name is not None:
            tell(outcome or "skipped", name)

    def subtest(_test, _subtest, error=None):
        if error is not None:
            depth.mark("failed")

    before("startTest", lambda test: depth.enter(test.id()))
    before("stopTest", stop)
    before("addSuccess", lambda *_: depth.mark("passed"))
    before("addFailure", lambda *_: depth.mark("failed"))
    before("addError", lambda *_: depth.mark("failed"))
    before("addSkip", lambda *_: depth.mark("skipped"))
    before("addExpectedFailure", lambda *_: depth.mark("skipped"))
    before("addUnexpectedSuccess", lambda *_: depth.mark("failed"))
    before("addSubTest", subtest)


# Loads a module as it is, and then watches it.
class Finder(object):
    def find_spec(self, name, path=None, target=None):
        watch = {"unittest.result": watch_unittest, "_pytest.config": watch_pytest}.get(name)
        if watch is None:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            try:
                watch(module)
            except Exception:
                pass

        spec.loader.exec_module = exec_module
        return spec


def watch_pytest(config):
    import types

    plugin = types.ModuleType("cto_test_ids")
    depth = shared_depth()
    outcomes = {}

    def protocol(item, nextitem):
        depth.enter(item.nodeid)
        yield
        depth.leave()

    protocol.pytest_impl = {"hookwrapper": True}

    def logreport(report):
        # With several workers the tests run elsewhere, and their reports arrive here.
        if len(depth.stack()) > 1:
            return
        order = ["skipped", "passed", "errored", "failed"]
        outcome = None
        if report.outcome == "failed":
            outcome = "failed" if report.when == "call" else "errored"
        elif report.outcome == "skipped":
            outcome = "skipped"
        elif report.outcome == "passed" and report.when == "call":
            outcome = "passed"
        known = outcomes.get(report.nodeid)
        if outcome is not None and (known is None or order.index(outcome) > order.index(known)):
            outcomes[report.nodeid] = outcome

    def logfinish(nodeid, location):
        if len(depth.stack()) <= 1 and nodeid in outcomes:
            tell(outcomes.pop(nodeid), nodeid)

    # A file that comes to nothing names no test. One in a test's own session is not a file of the project.
    def collectreport(report):
        word = {"failed": "unloaded", "skipped": "left"}.get(report.outcome)
        if word and report.nodeid and not depth.stack():
            tell(word, report.nodeid.split("::")[0])

    # Before the plugins that read them.
    def configure(config):
        for name, value in (("maxfail", 0), ("stepwise", False), ("stepwise_skip", False)):
            if getattr(config.option, name, None):
                setattr(config.option, name, value)

    configure.pytest_impl = {"tryfirst": True}
    if GO_ON:
        plugin.pytest_configure = configure
    plugin.pytest_collectreport = collectreport
    plugin.pytest_runtest_protocol = protocol
    plugin.pytest_runtest_logreport = logreport
    plugin.pytest_runtest_logfinish = logfinish
    manager = config.PytestPluginManager
    original = manager.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.register(plugin, plugin.__name__)

    manager.__init__ = init


def make_room():
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != HERE]
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if sys.version_info >= (3, 4):
    if PLACE and RUNNING not in os.environ:
        sys.meta_path.insert(0, Finder())
    make_room()
